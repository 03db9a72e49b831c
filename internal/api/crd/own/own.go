// Package own keeps the fields of definitions that Kubernetes lacks in forms that other clusters accept: annotations,
// and fields of Kubernetes. Clients with Kubernetes' Go types drop fields that the types lack when they write back a
// definition, and keep those forms.
//
// It stands between the decoding of a definition and its validation (package crd). Definitions are decoded JSON of v1,
// or of v1beta1 where a function says so. The functions are pure.
package own

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

var annotationsPath = field.NewPath("metadata", "annotations")

// annotate sets an annotation of a definition, or removes it if text is "". It reports whether the definition has
// annotations of the right type.
func annotate(obj object.Object, name, text string) bool {
	meta, ok := obj["metadata"].(object.Object)
	if !ok {
		return false
	}
	if _, ok := meta["annotations"].(object.Object); !ok && meta["annotations"] != nil {
		return false // refused elsewhere
	}
	if text == "" {
		annotations := object.Map(meta, "annotations")
		delete(annotations, name)
		object.SetOrDelete(meta, "annotations", annotations, len(annotations) > 0)
		return true
	}
	object.Child(meta, "annotations")[name] = text
	return true
}

// marshal returns an object as JSON for people, with operators such as < as they are.
func marshal(obj object.Object) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(obj); err != nil {
		panic("own: texts cannot be encoded: " + err.Error())
	}
	return strings.TrimSpace(text.String())
}

// versions returns the versions of a definition.
func versions(obj object.Object) []object.Object {
	return object.Objects(object.Map(obj, "spec")["versions"])
}
