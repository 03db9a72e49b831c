package scheduling

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	schedulingv1alpha2 "github.com/bowsprit/bowsprit/internal/kinds/scheduling/v1alpha2"
)

func podGroupKind() rule.Kind {
	return rule.Of[schedulingv1alpha2.PodGroup](rule.Kind{
		Group: schedulingV1alpha2, Kind: "PodGroup", Plural: "podgroups",
		Status: true, StatusOnly: true, OnDemand: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(podGroupCells), UnconditionalUpdate: true},
	})
}

var schedulingV1alpha2 = rule.Group{Name: "scheduling.k8s.io", Version: "v1alpha2", Priority: 16600, Rank: 2}

func podGroupCells(g *schedulingv1alpha2.PodGroup, e catalog.Env) []any {
	policy, workload := "Basic", rule.None
	if g.Spec.SchedulingPolicy.Gang != nil {
		policy = "Gang"
	}
	if ref := g.Spec.PodGroupTemplateRef; ref != nil && ref.Workload != nil {
		workload = ref.Workload.WorkloadName
	}
	return []any{g.Name, policy, workload, podGroupStatus(g.Status.Conditions), rule.Ago(g.CreationTimestamp, e)}
}

// podGroupStatus returns the state of a group in one word. Of several conditions of a type the last counts.
func podGroupStatus(conditions []metav1.Condition) string {
	status, disrupted := "Pending", (*string)(nil)
	for i, c := range conditions {
		switch {
		case c.Type == schedulingv1alpha2.DisruptionTarget:
			disrupted = &conditions[i].Reason
		case c.Type != schedulingv1alpha2.PodGroupScheduled:
		case c.Status == metav1.ConditionTrue:
			status = "Scheduled"
		default:
			status = "Unschedulable"
		}
	}
	if disrupted != nil {
		return *disrupted
	}
	return status
}

// validatePodGroup validates a new group.
func validatePodGroup(g *schedulingv1alpha2.PodGroup) (errs field.ErrorList) {
	path, s := field.NewPath("spec"), &g.Spec
	if ref := s.PodGroupTemplateRef; ref != nil {
		errs = validateTemplateRef(ref, path.Child("podGroupTemplateRef"))
	}
	// A template has the same fields but for its name and the reference to a template.
	return append(errs, validateTemplateFields(&schedulingv1alpha2.PodGroupTemplate{
		SchedulingPolicy: s.SchedulingPolicy, SchedulingConstraints: s.SchedulingConstraints,
		ResourceClaims: s.ResourceClaims, DisruptionMode: s.DisruptionMode,
		PriorityClassName: s.PriorityClassName, Priority: s.Priority,
	}, path)...)
}

func validateTemplateRef(ref *schedulingv1alpha2.PodGroupTemplateReference, path *field.Path) field.ErrorList {
	if ref.Workload == nil {
		return field.ErrorList{field.Invalid(path, "", "must specify one of: `workload`")}
	}
	path = path.Child("workload")
	errs := validateName(ref.Workload.WorkloadName, path.Child("workloadName"), content.IsDNS1123Subdomain)
	return append(errs, validateName(ref.Workload.PodGroupTemplateName, path.Child("podGroupTemplateName"),
		content.IsDNS1123Label)...)
}

// validateTemplateFields validates the common fields of a group and a group template.
func validateTemplateFields(t *schedulingv1alpha2.PodGroupTemplate, path *field.Path) field.ErrorList {
	errs := validatePolicy(&t.SchedulingPolicy, path.Child("schedulingPolicy"))
	if t.SchedulingConstraints != nil {
		errs = append(errs, validateTopology(t.SchedulingConstraints.Topology,
			path.Child("schedulingConstraints", "topology"))...)
	}
	errs = append(errs, validateGroupClaims(t.ResourceClaims, path.Child("resourceClaims"))...)
	modes := []schedulingv1alpha2.DisruptionMode{
		schedulingv1alpha2.DisruptionModePod, schedulingv1alpha2.DisruptionModePodGroup,
	}
	if mode := t.DisruptionMode; mode != nil && !slices.Contains(modes, *mode) {
		errs = append(errs, field.NotSupported(path.Child("disruptionMode"), *mode, modes))
	}
	if t.PriorityClassName != "" {
		errs = append(errs, validateName(t.PriorityClassName, path.Child("priorityClassName"),
			content.IsDNS1123Subdomain)...)
	}
	if p := t.Priority; p != nil && *p > highestPriority {
		errs = append(errs, field.Invalid(path.Child("priority"), *p, content.MaxError(highestPriority)))
	}
	return errs
}

func validatePolicy(p *schedulingv1alpha2.PodGroupSchedulingPolicy, path *field.Path) (errs field.ErrorList) {
	switch {
	case p.Basic != nil && p.Gang != nil:
		errs = append(errs, field.Invalid(path, "{basic, gang}", "must specify exactly one of: `basic`, `gang`"))
	case p.Basic == nil && p.Gang == nil:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `basic`, `gang`"))
	}
	if p.Gang == nil {
		return errs
	}
	switch count, at := p.Gang.MinCount, path.Child("gang", "minCount"); {
	case count == 0:
		errs = append(errs, field.Required(at, ""))
	case count < 1:
		errs = append(errs, field.Invalid(at, count, content.MinError(1)))
	}
	return errs
}

func validateTopology(topology []schedulingv1alpha2.TopologyConstraint, path *field.Path) (errs field.ErrorList) {
	if len(topology) > 1 {
		return field.ErrorList{field.TooMany(path, len(topology), 1)}
	}
	for i, c := range topology {
		errs = append(errs, validateName(c.Key, path.Index(i).Child("key"), content.IsLabelKey)...)
	}
	return errs
}

func validateGroupClaims(claims []schedulingv1alpha2.PodGroupResourceClaim, path *field.Path) (errs field.ErrorList) {
	if len(claims) > schedulingv1alpha2.MaxPodGroupResourceClaims {
		return field.ErrorList{field.TooMany(path, len(claims), schedulingv1alpha2.MaxPodGroupResourceClaims)}
	}
	errs = duplicates(claims, path, func(c schedulingv1alpha2.PodGroupResourceClaim) string { return c.Name })
	for i, c := range claims {
		at := path.Index(i)
		const which = "`resourceClaimName`, `resourceClaimTemplateName`"
		switch {
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(at, "{resourceClaimName, resourceClaimTemplateName}",
				"must specify exactly one of: "+which))
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(at, "", "must specify one of: "+which))
		}
		errs = append(errs, validateName(c.Name, at.Child("name"), content.IsDNS1123Label)...)
		errs = append(errs, validateOptionalName(c.ResourceClaimName, at.Child("resourceClaimName"))...)
		errs = append(errs, validateOptionalName(c.ResourceClaimTemplateName, at.Child("resourceClaimTemplateName"))...)
	}
	return errs
}

// validateName validates a required name.
func validateName(name string, path *field.Path, check func(string) []string) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, wrong := range check(name) {
		errs = append(errs, field.Invalid(path, name, wrong))
	}
	return errs
}

// validateOptionalName validates the name of an object, which may be missing but not empty.
func validateOptionalName(name *string, path *field.Path) (errs field.ErrorList) {
	if name == nil {
		return nil
	}
	for _, wrong := range content.IsDNS1123Subdomain(*name) {
		errs = append(errs, field.Invalid(path, *name, wrong))
	}
	return errs
}

// duplicates reports items with the name of an earlier one.
func duplicates[T any](items []T, path *field.Path, name func(T) string) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, item := range items {
		if seen[name(item)] {
			errs = append(errs, field.Duplicate(path.Index(i), item))
		}
		seen[name(item)] = true
	}
	return errs
}

// validatePodGroupUpdate validates a change: only the status may change.
func validatePodGroupUpdate(g, old *schedulingv1alpha2.PodGroup, subresource string) (errs field.ErrorList) {
	if subresource == "status" {
		return validateGroupStatus(g, old)
	}
	path, now, was := field.NewPath("spec"), &g.Spec, &old.Spec
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"podGroupTemplateRef", now.PodGroupTemplateRef, was.PodGroupTemplateRef},
		{"schedulingPolicy", now.SchedulingPolicy, was.SchedulingPolicy},
		{"schedulingConstraints", now.SchedulingConstraints, was.SchedulingConstraints},
		{"resourceClaims", now.ResourceClaims, was.ResourceClaims},
		{"disruptionMode", now.DisruptionMode, was.DisruptionMode},
		{"priorityClassName", now.PriorityClassName, was.PriorityClassName},
		{"priority", now.Priority, was.Priority},
	} {
		if equality.Semantic.DeepEqual(f.now, f.was) {
			continue
		}
		errs = append(errs, immutable(path.Child(f.name)))
		const most = schedulingv1alpha2.MaxPodGroupResourceClaims
		if n := len(now.ResourceClaims); f.name == "resourceClaims" && n > most {
			errs = append(errs, field.TooMany(path.Child(f.name), n, most))
		}
	}
	return errs
}

func immutable(path *field.Path) *field.Error { return field.Invalid(path, nil, "field is immutable") }

func validateGroupStatus(g, old *schedulingv1alpha2.PodGroup) field.ErrorList {
	path := field.NewPath("status")
	errs := metav1validation.ValidateConditions(g.Status.Conditions, path.Child("conditions"))
	path = path.Child("resourceClaimStatuses")
	statuses, before := g.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses
	claims := sets.Set[string]{}
	for _, c := range g.Spec.ResourceClaims {
		claims.Insert(c.Name)
	}
	for i, s := range statuses {
		if !claims.Has(s.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), s.Name,
				"must match the name of an entry in `spec.resourceClaims`"))
		}
	}
	if equality.Semantic.DeepEqual(statuses, before) {
		return errs
	}
	if len(statuses) > schedulingv1alpha2.MaxPodGroupResourceClaims {
		return append(errs, field.TooMany(path, len(statuses), schedulingv1alpha2.MaxPodGroupResourceClaims))
	}
	errs = append(errs, duplicates(statuses, path,
		func(s schedulingv1alpha2.PodGroupResourceClaimStatus) string { return s.Name })...)
	for i, s := range statuses {
		kept := slices.ContainsFunc(before, func(b schedulingv1alpha2.PodGroupResourceClaimStatus) bool {
			return equality.Semantic.DeepEqual(s, b)
		})
		if !kept {
			errs = append(errs, validateOptionalName(s.ResourceClaimName, path.Index(i).Child("resourceClaimName"))...)
		}
	}
	return errs
}

// podGroupFunctions are the functions that pod_group.txt names.
func podGroupFunctions() rule.Functions {
	return rule.Functions{"podGroup": rule.Typed(validatePodGroup, validatePodGroupUpdate)}
}
