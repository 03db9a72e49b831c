package codec

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		&appsv1.ControllerRevision{}); !apierrors.IsBadRequest(err) {
		t.Errorf("half a JSON document: %v", err)
	}
	if _, err := FromProtobuf(body, new(string)); err == nil {
		t.Error("a type without protobuf: no error")
	}
}
