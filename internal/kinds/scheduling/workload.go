package scheduling

import (
	"slices"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func workloadKind() rule.Kind {
	return rule.Of[schedulingv1beta1.Workload](rule.Kind{
		Group: schedulingV1beta1, Kind: "Workload", Plural: "workloads", OnDemand: true,
		Also:     rule.OnDemand[schedulingv1alpha3.Workload](schedulingV1alpha3),
		Strategy: &catalog.Strategy{Cells: rule.Printed(workloadCells)},
	})
}

func workloadCells(w *schedulingv1beta1.Workload, e catalog.Env) []any {
	return []any{w.Name, rule.Ago(w.CreationTimestamp, e)}
}

// validateWorkload validates a new workload.
func validateWorkload(w *schedulingv1beta1.Workload) field.ErrorList {
	path := field.NewPath("spec")
	errs := samePriority(&w.Spec, path)
	templates := w.Spec.PodGroupTemplates
	if len(templates) == 0 {
		errs = append(errs, field.Invalid(path, "",
			"must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"))
	}
	if ref := w.Spec.ControllerRef; ref != nil {
		at := path.Child("controllerRef")
		if ref.APIGroup != "" {
			errs = append(errs, validateName(ref.APIGroup, at.Child("apiGroup"), content.IsDNS1123Subdomain)...)
		}
		errs = append(errs, validateName(ref.Kind, at.Child("kind"), content.IsPathSegmentName)...)
		errs = append(errs, validateName(ref.Name, at.Child("name"), content.IsPathSegmentName)...)
	}
	path = path.Child("podGroupTemplates")
	if n := len(templates); n > schedulingv1beta1.WorkloadMaxPodGroupTemplates {
		return append(errs, field.TooMany(path, n, schedulingv1beta1.WorkloadMaxPodGroupTemplates))
	}
	errs = append(errs, duplicates(templates, path,
		func(t schedulingv1beta1.PodGroupTemplate) string { return t.Name })...)
	for i := range templates {
		at := path.Index(i)
		errs = append(errs, validateName(templates[i].Name, at.Child("name"), content.IsDNS1123Label)...)
		errs = append(errs, validateTemplateFields(&templates[i], at)...)
	}
	return errs
}

// samePriority returns an error if the templates of a workload differ in their priorities or classes.
func samePriority(s *schedulingv1beta1.WorkloadSpec, path *field.Path) field.ErrorList {
	for i := range s.PodGroupTemplates {
		first, t := &s.PodGroupTemplates[0], &s.PodGroupTemplates[i]
		if t.PriorityClassName != first.PriorityClassName || !equality.Semantic.DeepEqual(t.Priority, first.Priority) {
			return field.ErrorList{field.Invalid(path, nil, "detected multiple priority configurations")}
		}
	}
	return nil
}

// validateWorkloadUpdate validates a change: only the number of pods of gangs may change.
func validateWorkloadUpdate(w, old *schedulingv1beta1.Workload, _ string) field.ErrorList {
	path := field.NewPath("spec")
	errs := samePriority(&w.Spec, path)
	if now := len(w.Spec.PodGroupTemplates); now == 0 && len(old.Spec.PodGroupTemplates) > 0 {
		errs = append(errs, field.Invalid(path, "",
			"must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"))
	}
	if !equality.Semantic.DeepEqual(w.Spec.ControllerRef, old.Spec.ControllerRef) {
		errs = append(errs, immutable(path.Child("controllerRef")))
	}
	return append(errs, validateTemplatesUpdate(w.Spec.PodGroupTemplates, old.Spec.PodGroupTemplates,
		path.Child("podGroupTemplates"))...)
}

// validateTemplatesUpdate validates changed templates: none may be added or removed.
func validateTemplatesUpdate(now, was []schedulingv1beta1.PodGroupTemplate, path *field.Path) (errs field.ErrorList) {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	at := func(in []schedulingv1beta1.PodGroupTemplate, name string) int {
		return slices.IndexFunc(in, func(t schedulingv1beta1.PodGroupTemplate) bool { return t.Name == name })
	}
	if n := len(now); n > schedulingv1beta1.WorkloadMaxPodGroupTemplates {
		errs = append(errs, field.TooMany(path, n, schedulingv1beta1.WorkloadMaxPodGroupTemplates))
	}
	for i := range now {
		if at(was, now[i].Name) < 0 {
			errs = append(errs, field.Forbidden(path.Index(i), "item may not be added"))
		}
	}
	for i := range was {
		if at(now, was[i].Name) < 0 {
			errs = append(errs, field.Forbidden(path, "item may not be removed"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	errs = duplicates(now, path, func(t schedulingv1beta1.PodGroupTemplate) string { return t.Name })
	for i := range now {
		before := &was[at(was, now[i].Name)]
		errs = append(errs, validateTemplateUpdate(&now[i], before, path.Index(i))...)
	}
	return errs
}

// workloadFunctions are the functions that workload.txt names.
func workloadFunctions() rule.Functions {
	return rule.Functions{"workload": rule.Typed(validateWorkload, validateWorkloadUpdate)}
}
