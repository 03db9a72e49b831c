package codec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestHoldsDocuments(t *testing.T) {
	t.Parallel()
	for typed, want := range map[any]bool{
		&appsv1.ControllerRevision{}: true, &resourcev1.ResourceClaim{}: true,
		&resourcev1.ResourceClaimTemplate{}: true, &resourcev1.DeviceClass{}: true,
		&resourcev1.ResourceSlice{}: false, &corev1.Pod{}: false, new(string): false,
		&apiextensionsv1.CustomResourceDefinition{}: false, // its schemas contain themselves
	} {
		if got := HoldsDocuments(typed); got != want {
			t.Errorf("%T: %v", typed, got)
		}
	}
	if HoldsDocuments(nil) {
		t.Error("nil")
	}
}

// TestVerbatim has documents go through decoded JSON.
func TestVerbatim(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sent string
		// compact is the JSON form, and verbatim reports whether protobuf preserves the original text; otherwise it is
		// compact, too.
		compact  string
		verbatim bool
	}{
		{"canonical", `{"a":1,"b":[true,null,"x"]}`, `{"a":1,"b":[true,null,"x"]}`, false},
		{"blanks", `{ "a" : 1 }`, `{"a":1}`, true},
		{"order", `{"b":1,"a":{"d":1,"c":2}}`, `{"b":1,"a":{"d":1,"c":2}}`, true},
		{"repeated field", `{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{"lines", "{\n\t\"a\": [\n1,\r\n2 ] }\n", `{"a":[1,2]}`, true},
		{"escapes", `{"<a>":"\u00e4\/"}`, `{"\u003ca\u003e":"\u00e4\/"}`, true},
		{"fraction", `{"a":1.5}`, `{"a":1.5}`, false},
		{"whole fraction", `{"a":1.0}`, `{"a":1.0}`, true},
		{"large number", `{"a":12345678901234567890123}`, `{"a":12345678901234567890123}`, true},
		{"text", ` "a"`, `"a"`, true},
		{"list", `[1, 2]`, `[1,2]`, true},
		{"empty", `{}`, `{}`, false},
		{"none", ``, ``, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			typed := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(test.sent)}, Revision: 1}
			texts := Verbatim(Documents(typed, nil))
			if (texts != nil) != test.verbatim {
				t.Errorf("verbatim: %q", texts)
			}
			if test.sent == "" {
				typed.Data.Raw = nil
			}
			doc, err := appendTyped(nil, typed)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := DecodeJSON(doc)
			if err != nil {
				t.Fatal(err)
			}
			doc = AppendJSON(nil, tree)
			shown, err := WithDocuments(doc, new(appsv1.ControllerRevision), texts)
			if err != nil || test.sent != "" && !strings.Contains(string(shown), `"data":`+test.compact+`,`) {
				t.Errorf("JSON: %s %v", shown, err)
			}
			for _, from := range [][]byte{doc, shown} {
				message, err := Message(from, new(appsv1.ControllerRevision), texts...)
				if err != nil {
					t.Fatal(err)
				}
				var got appsv1.ControllerRevision
				if err := got.Unmarshal(message); err != nil || string(got.Data.Raw) != test.sent && test.sent != "" {
					t.Errorf("protobuf: %s %v", got.Data.Raw, err)
				}
			}
		})
	}
}

// TestSetDocuments finds the places of texts in an object that has changed since.
func TestSetDocuments(t *testing.T) {
	t.Parallel()
	const a, b = `{ "a":1}`, `{"b": 1}`
	for _, test := range []struct {
		name               string
		sent, stored, want []string
	}{
		{"as sent", []string{a, b}, []string{`{"a":1}`, `{"b":1}`}, []string{a, b}},
		{"another order", []string{a, b}, []string{`{"b":1}`, `{"a":1}`}, []string{b, a}},
		{"one is gone", []string{a, b}, []string{`{"b":1}`}, []string{b}},
		{"one has changed", []string{a, b}, []string{`{"a":2}`, `{"b":1}`}, []string{`{"a":2}`, b}},
		{"alike", []string{`{"a":1}`, `{"a": 1}`}, []string{`{"a":1}`, `{"a":1}`}, []string{`{"a":1}`, `{"a": 1}`}},
		{"no more of them", []string{`{"a": 1}`}, []string{`{"a":1}`, `{"a":1}`}, []string{`{"a": 1}`, `{"a":1}`}},
		{"no JSON", []string{`{"a"`}, []string{`{"a":1}`}, []string{`{"a":1}`}},
	} {
		claim := new(resourcev1.ResourceClaim)
		for _, doc := range test.stored {
			claim.Status.Devices = append(claim.Status.Devices,
				resourcev1.AllocatedDeviceStatus{Data: &runtime.RawExtension{Raw: []byte(doc)}})
		}
		claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{})
		SetDocuments(claim, test.sent)
		if got := Documents(claim, nil); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestDocumentsIn selects the documents of certain fields.
func TestDocumentsIn(t *testing.T) {
	t.Parallel()
	claim := new(resourcev1.ResourceClaim)
	var config resourcev1.DeviceClaimConfiguration
	config.Opaque = &resourcev1.OpaqueDeviceConfiguration{Parameters: runtime.RawExtension{Raw: []byte(`{"a": 1}`)}}
	claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, config)
	claim.Status.Devices = append(claim.Status.Devices,
		resourcev1.AllocatedDeviceStatus{Data: &runtime.RawExtension{Raw: []byte(`{"b": 1}`)}},
		resourcev1.AllocatedDeviceStatus{Data: &runtime.RawExtension{Raw: []byte("\xd9\xd9\xf7\xa0")}}) // CBOR
	got := map[string][]string{}
	for _, field := range []string{"spec", "status", "metadata"} {
		got[field] = Documents(claim, func(name string) bool { return name == field })
	}
	want := map[string][]string{"spec": {`{"a": 1}`}, "status": {`{"b": 1}`}, "metadata": nil}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := WithDocuments([]byte("["), claim, nil); err == nil {
		t.Error("no JSON is taken for an object")
	}
}
