package kinds

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// defaultNamespace labels the namespace with its name, so that selectors can choose it.
func defaultNamespace(obj catalog.Object) {
	name := catalog.Text(obj, "metadata", "name")
	if name == "" {
		return // generateName; prepareNamespaceCreate labels it when the name is known
	}
	child(child(obj, "metadata"), "labels")[corev1.LabelMetadataName] = name
}

// prepareNamespaceCreate makes the namespace Active and puts the finalizer on it that stands for its contents. (A
// default would not do: the namespace controller removes the finalizer in the end, and it must stay away.)
func prepareNamespaceCreate(obj catalog.Object, _ catalog.Env) {
	defaultNamespace(obj)
	obj["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
	spec := child(obj, "spec")
	finalizers, _ := spec["finalizers"].([]any)
	if !slices.Contains(finalizers, any(string(corev1.FinalizerKubernetes))) {
		spec["finalizers"] = append(slices.Clone(finalizers), string(corev1.FinalizerKubernetes))
	}
}

// prepareNamespaceUpdate keeps what the request may not change: spec.finalizers is changed through /finalize only,
// status through /status only.
func prepareNamespaceUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	defaultNamespace(obj)
	switch subresource {
	case "status":
		keep(obj, old, "spec")
	case "finalize":
		keep(obj, old, "status")
	default:
		keep(obj, old, "status")
		was, _ := old["spec"].(map[string]any)
		keep(child(obj, "spec"), was, "finalizers")
	}
}

// prepareNamespaceDelete turns a deletion into the beginning of one while spec.finalizers holds something: the
// namespace controller empties the namespace and then calls /finalize. It may be called again for a namespace that is
// already Terminating; false means that nothing holds it any more.
func prepareNamespaceDelete(obj catalog.Object, e catalog.Env) bool {
	if finalizers, _ := child(obj, "spec")["finalizers"].([]any); len(finalizers) == 0 {
		return false
	}
	meta := child(obj, "metadata")
	if meta["deletionTimestamp"] == nil {
		meta["deletionTimestamp"] = e.Now.UTC().Format(time.RFC3339)
	}
	child(obj, "status")["phase"] = string(corev1.NamespaceTerminating)
	return true
}

func validateNamespace(ns *corev1.Namespace) errorList {
	errs := checkFinalizers(ns.Finalizers)
	for _, f := range ns.Spec.Finalizers {
		// kube does not say which
		errs = append(errs, checkFinalizerName(string(f), field.NewPath("spec", "finalizers"))...)
	}
	return errs
}

func validateNamespaceSpec(ns *corev1.Namespace) errorList {
	var errs errorList
	path := field.NewPath("spec", "finalizers")
	for i, f := range ns.Spec.Finalizers {
		errs = append(errs, checkFinalizerName(string(f), path.Index(i))...)
	}
	return errs
}

func validateNamespaceUpdate(ns, old *corev1.Namespace, subresource string) errorList {
	errs := checkFinalizers(ns.Finalizers)
	switch subresource {
	case "status":
		phase, path := ns.Status.Phase, field.NewPath("status", "Phase") // as kube spells it
		switch {
		case ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceActive:
			errs = append(errs, field.Invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty"))
		case !ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceTerminating:
			errs = append(errs,
				field.Invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
		}
	default:
		errs = append(errs, validateNamespaceSpec(ns)...)
	}
	return errs
}

func namespaceCells(obj catalog.Object, e catalog.Env) []any {
	return []any{catalog.Text(obj, "metadata", "name"), catalog.Text(obj, "status", "phase"), age(obj, e.Now)}
}
