package core

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func namespaceKind() rule.Kind {
	return rule.Of[corev1.Namespace](rule.Kind{
		Group: coreV1, Kind: "Namespace", AnyFinalizer: true, Plural: "namespaces", Short: []string{"ns"},
		ReturnsDeleted: true,
		ClusterScoped:  true, Status: true, NoDeleteCollection: true,
		Subresources: []catalog.Subresource{rule.ObjectSubresource("Namespace", "finalize", "update")},
		ResetFields:  map[string]catalog.ResetFields{"finalize": rule.Except("status")},
		Strategy: &catalog.Strategy{
			ValidName:           validation.ValidateNamespaceName,
			Default:             defaultNamespace,
			PrepareCreate:       prepareNamespaceCreate,
			PrepareUpdate:       prepareNamespaceUpdate,
			PrepareDelete:       prepareNamespaceDelete,
			FencesContents:      true,
			UnconditionalUpdate: true,
			FieldLabels:         rule.FieldLabels("status.phase"),
			Cells:               namespaceCells,
		},
	})
}

// defaultNamespace labels the namespace with its name, so that selectors can choose it.
func defaultNamespace(obj object.Object) {
	name := object.String(obj, "metadata", "name")
	if name == "" {
		return // prepareNamespaceCreate labels it when the name is generated
	}
	object.Child(object.Child(obj, "metadata"), "labels")[corev1.LabelMetadataName] = name
}

// prepareNamespaceCreate sets the phase Active and the finalizer "kubernetes". (A default would not do: the namespace
// controller removes the finalizer in the end, and it must not come back.)
func prepareNamespaceCreate(obj object.Object, _ catalog.Env) {
	defaultNamespace(obj)
	obj["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
	spec := object.Child(obj, "spec")
	finalizers, _ := spec["finalizers"].([]any)
	if !slices.Contains(finalizers, any(string(corev1.FinalizerKubernetes))) {
		spec["finalizers"] = append(slices.Clone(finalizers), string(corev1.FinalizerKubernetes))
	}
}

// prepareNamespaceUpdate keeps the fields that the request may not change: spec.finalizers changes only through
// /finalize, status only through /status.
func prepareNamespaceUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	defaultNamespace(obj)
	switch subresource {
	case "status":
		rule.Keep(obj, old, "spec")
	case "finalize":
		rule.Keep(obj, old, "status")
	default:
		rule.Keep(obj, old, "status")
		was, _ := old["spec"].(map[string]any)
		rule.Keep(object.Child(obj, "spec"), was, "finalizers")
	}
}

// prepareNamespaceDelete begins the deletion of a namespace while spec.finalizers is not empty: the namespace
// controller deletes its content and then calls /finalize. It may be called again for a Terminating namespace; false
// means that nothing blocks the deletion any more.
func prepareNamespaceDelete(obj object.Object, e catalog.Env) bool {
	if finalizers, _ := object.Child(obj, "spec")["finalizers"].([]any); len(finalizers) == 0 {
		return false
	}
	meta := object.Child(obj, "metadata")
	if meta["deletionTimestamp"] == nil {
		meta["deletionTimestamp"] = e.Now.UTC().Format(time.RFC3339)
	}
	object.Child(obj, "status")["phase"] = string(corev1.NamespaceTerminating)
	return true
}

func validateNamespace(ns *corev1.Namespace) field.ErrorList {
	errs := rule.CheckFinalizers(ns.Finalizers)
	for _, f := range ns.Spec.Finalizers {
		// Kubernetes does not give the index
		errs = append(errs, rule.CheckFinalizerName(string(f), field.NewPath("spec", "finalizers"))...)
	}
	return errs
}

func validateNamespaceSpec(ns *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "finalizers")
	for i, f := range ns.Spec.Finalizers {
		errs = append(errs, rule.CheckFinalizerName(string(f), path.Index(i))...)
	}
	return errs
}

func validateNamespaceUpdate(ns, old *corev1.Namespace, subresource string) field.ErrorList {
	errs := rule.CheckFinalizers(ns.Finalizers)
	switch subresource {
	case "status":
		phase, path := ns.Status.Phase, field.NewPath("status", "Phase") // Kubernetes' spelling
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

func namespaceCells(obj object.Object, e catalog.Env) []any {
	return []any{object.String(obj, "metadata", "name"), object.String(obj, "status", "phase"), rule.Age(obj, e.Now)}
}

// namespaceFunctions are the functions that namespace.txt names.
func namespaceFunctions() rule.Functions {
	return rule.Functions{
		"namespace": rule.Typed(validateNamespace, validateNamespaceUpdate),
	}
}
