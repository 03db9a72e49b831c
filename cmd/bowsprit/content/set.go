package content

import (
	"bytes"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// setLabel is the label of the objects of "import --set". Its value is the name of the set.
const setLabel = "bowsprit.dev/import-set"

// checkSet checks the name of a set.
func checkSet(name string) error {
	if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
		return fmt.Errorf("--set=%s: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// setOf returns the set that an import has put an object into, or "". The label alone does not count: a client may have
// copied it from another object.
func setOf(obj metav1.Object) string {
	name := obj.GetLabels()[setLabel]
	if name == "" || !labeled(obj) {
		return ""
	}
	return name
}

// labeled reports whether the field manager of import owns the label of an object.
func labeled(obj metav1.Object) bool {
	for _, m := range obj.GetManagedFields() {
		if m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" &&
			m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:`+setLabel+`"`)) {
			return true
		}
	}
	return false
}

// join sets the label of an object to a set, or removes it for the set "". A file of an export may have the label.
func join(obj *unstructured.Unstructured, set string) {
	labels := obj.GetLabels()
	if set == "" && labels[setLabel] == "" {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[setLabel] = set
	if set == "" {
		delete(labels, setLabel)
	}
	if obj.SetLabels(labels); len(labels) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "labels")
	}
}

// join sets the set of an object that exists. It returns an error if the object is in another set.
func (a *applier) join(obj, before *unstructured.Unstructured) error {
	switch other := setOf(before); {
	case other == "" || other == a.flags.set:
	case a.flags.set == "":
		join(obj, other) // it remains there
	case !a.flags.force:
		return fmt.Errorf("the object is in the set %q; --force-conflicts moves it to %q", other, a.flags.set)
	}
	return nil
}
