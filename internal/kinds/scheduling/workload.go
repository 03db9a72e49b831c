package scheduling

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	schedulingv1alpha2 "github.com/bowsprit/bowsprit/internal/kinds/scheduling/v1alpha2"
)

func workloadKind() rule.Kind {
	return rule.Of[schedulingv1alpha2.Workload](rule.Kind{
		Group: schedulingV1alpha2, Kind: "Workload", Plural: "workloads", OnDemand: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(workloadCells), UnconditionalUpdate: true},
	})
}

func workloadCells(w *schedulingv1alpha2.Workload, e catalog.Env) []any {
	return []any{w.Name, rule.Ago(w.CreationTimestamp, e)}
}

// validateWorkload validates a new workload.
func validateWorkload(w *schedulingv1alpha2.Workload) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if ref := w.Spec.ControllerRef; ref != nil {
		at := path.Child("controllerRef")
		if ref.APIGroup != "" {
			errs = append(errs, validateName(ref.APIGroup, at.Child("apiGroup"), content.IsDNS1123Subdomain)...)
		}
		errs = append(errs, validateName(ref.Kind, at.Child("kind"), content.IsPathSegmentName)...)
		errs = append(errs, validateName(ref.Name, at.Child("name"), content.IsPathSegmentName)...)
	}
	path = path.Child("podGroupTemplates")
	templates := w.Spec.PodGroupTemplates
	if wrong := countTemplates(templates, path); wrong != nil {
		return append(errs, wrong)
	}
	errs = append(errs, duplicates(templates, path,
		func(t schedulingv1alpha2.PodGroupTemplate) string { return t.Name })...)
	for i := range templates {
		at := path.Index(i)
		errs = append(errs, validateName(templates[i].Name, at.Child("name"), content.IsDNS1123Label)...)
		errs = append(errs, validateTemplateFields(&templates[i], at)...)
	}
	return errs
}

// countTemplates returns the error in the number of templates, or nil.
func countTemplates(templates []schedulingv1alpha2.PodGroupTemplate, path *field.Path) *field.Error {
	switch n := len(templates); {
	case n > schedulingv1alpha2.WorkloadMaxPodGroupTemplates:
		return field.TooMany(path, n, schedulingv1alpha2.WorkloadMaxPodGroupTemplates)
	case n == 0:
		return field.Required(path, "")
	}
	return nil
}

// validateWorkloadUpdate validates that the spec of a workload does not change.
func validateWorkloadUpdate(w, old *schedulingv1alpha2.Workload, _ string) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if !equality.Semantic.DeepEqual(w.Spec.ControllerRef, old.Spec.ControllerRef) {
		errs = append(errs, immutable(path.Child("controllerRef")))
	}
	if templates := w.Spec.PodGroupTemplates; !equality.Semantic.DeepEqual(templates, old.Spec.PodGroupTemplates) {
		path = path.Child("podGroupTemplates")
		errs = append(errs, immutable(path))
		if wrong := countTemplates(templates, path); wrong != nil {
			errs = append(errs, wrong)
		}
	}
	return errs
}

// workloadFunctions are the functions that workload.txt names.
func workloadFunctions() rule.Functions {
	return rule.Functions{"workload": rule.Typed(validateWorkload, validateWorkloadUpdate)}
}
