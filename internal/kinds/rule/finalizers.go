package rule

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// CheckFinalizers validates metadata.finalizers more strictly than for other kinds: a name without a slash must be one
// of Kubernetes' own.
func CheckFinalizers(finalizers []string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata", "finalizers")
	for i, name := range finalizers {
		errs = append(errs, checkStandardFinalizer(name, path.Index(i))...)
	}
	return errs
}

func finalizersOf(obj object.Object) []string {
	meta, _ := obj["metadata"].(map[string]any)
	list, _ := meta["finalizers"].([]any)
	out := make([]string, len(list))
	for i, f := range list {
		out[i], _ = f.(string)
	}
	return out
}

// CheckFinalizerName validates a finalizer outside of metadata.
func CheckFinalizerName(name string, path *field.Path) field.ErrorList {
	return append(validation.ValidateFinalizerName(name, path), checkStandardFinalizer(name, path)...)
}

func checkStandardFinalizer(name string, path *field.Path) field.ErrorList {
	if strings.Contains(name, "/") {
		return nil
	}
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"),
	}
}
