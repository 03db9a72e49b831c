package codec

import (
	"bytes"
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestFromProtobuf(t *testing.T) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{"x": "y"}},
		Data:       map[string]string{"k": "v"},
	}
	raw, err := config.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := FromProtobuf(append([]byte("k8s\x00"), body...), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	var got corev1.ConfigMap
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "ConfigMap" || got.APIVersion != "v1" || got.Data["k"] != "v" || got.Labels["x"] != "y" {
		t.Errorf("got %s", doc)
	}
	for name, bad := range map[string][]byte{
		"no prefix": body, "empty": nil, "cut off": append([]byte("k8s\x00"), body[:len(body)-3]...),
	} {
		if _, err := FromProtobuf(bad, &corev1.ConfigMap{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte("{")}}
	if envelope.Raw, err = revision.Marshal(); err != nil {
		t.Fatal(err)
	}
	if body, err = envelope.Marshal(); err != nil {
		t.Fatal(err)
	}
	if _, err := FromProtobuf(append([]byte("k8s\x00"), body...),
		&appsv1.ControllerRevision{}); err == nil {
		t.Error("half a JSON document: no error")
	}
	if _, err := FromProtobuf(body, new(string)); err == nil {
		t.Error("a type without protobuf: no error")
	}
}

// TestUnreadableFields decodes managedFields that are not JSON, or not only: they become fields that cannot be read,
// and no error of the whole object.
func TestUnreadableFields(t *testing.T) {
	for _, raw := range []string{"", "{", `{"f:data":{}}{"more":1}`} {
		fields := metav1.FieldsV1{}
		fields.SetRawBytes([]byte(raw))
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "m", FieldsV1: &fields}, {Manager: "none"}}}}
		message, err := config.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		doc, err := FromProtobuf(Enclose("v1", "ConfigMap", message), &corev1.ConfigMap{})
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		var got corev1.ConfigMap
		if err := json.Unmarshal(doc, &got); err != nil || len(got.ManagedFields) != 2 {
			t.Fatalf("%q: %v %s", raw, err, doc)
		}
		f := got.ManagedFields[0].FieldsV1
		if f == nil || new(fieldpath.Set).FromJSON(bytes.NewReader(f.GetRawBytes())) == nil {
			t.Errorf("%q: the fields can be read: %s", raw, doc)
		}
	}
}

// TestReadProtobuf compares errors with a running kube-apiserver 1.36.3.
func TestReadProtobuf(t *testing.T) {
	want := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	const unrecognized = "the object provided is unrecognized (must be of type ConfigMap): "
	const noPrefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
	for _, tc := range []struct{ name, body, doc, refused string }{
		{"no protobuf", "hello", "", unrecognized + noPrefix + " (68656c6c6f)"},
		{"JSON", `{"a":1}`, "", unrecognized + noPrefix + ` ({"a":1})`},
		{"nothing", "", "", unrecognized + "empty data (<empty>)"},
		{"nothing but the prefix", "k8s\x00", "", unrecognized + "empty body (6b387300)"},
		{"half an envelope", "k8s\x00\xff\xff\xff", "", unrecognized + "unexpected EOF (6b387300ffffff)"},
		{"half a message", string(Enclose("v1", "ConfigMap", []byte("\xff\xff"))), "",
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF`},
		{"half a message without a kind", string(Enclose("", "", []byte("\xff\xff"))), "",
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF`},
		{"another kind", string(Enclose("x/v1", "Foo", []byte("\xff\xff"))), `{"apiVersion":"x/v1","kind":"Foo"}`, ""},
	} {
		doc, err := ReadProtobuf([]byte(tc.body), &corev1.ConfigMap{}, want)
		if string(doc) != tc.doc || (err == nil) != (tc.refused == "") || err != nil && err.Error() != tc.refused {
			t.Errorf("%s: %s %v", tc.name, doc, err)
		}
	}
}
