package scheduling

import (
	"slices"
	"strings"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func podGroupKind() rule.Kind {
	return rule.Of[schedulingv1beta1.PodGroup](rule.Kind{
		Group: schedulingV1beta1, Kind: "PodGroup", Plural: "podgroups",
		Status: true, StatusOnly: true, OnDemand: true,
		Also:     rule.OnDemand[schedulingv1alpha3.PodGroup](schedulingV1alpha3),
		Strategy: &catalog.Strategy{Cells: rule.Printed(podGroupCells)},
	})
}

var (
	schedulingV1beta1  = rule.Group{Name: "scheduling.k8s.io", Version: "v1beta1", Priority: 16600, Rank: 9}
	schedulingV1alpha3 = rule.Group{Name: "scheduling.k8s.io", Version: "v1alpha3", Priority: 16600, Rank: 3}
)

func podGroupCells(g *schedulingv1beta1.PodGroup, e catalog.Env) []any {
	policy, workload := "Basic", rule.None
	if g.Spec.SchedulingPolicy.Gang != nil {
		policy = "Gang"
	}
	if ref := g.Spec.WorkloadRef; ref != nil {
		workload = ref.WorkloadName
	}
	return []any{g.Name, policy, workload, podGroupStatus(g.Status.Conditions), rule.Ago(g.CreationTimestamp, e)}
}

// podGroupStatus returns the state of a group in one word. Of several conditions of a type the last counts.
func podGroupStatus(conditions []metav1.Condition) string {
	status, disrupted := "Pending", (*string)(nil)
	for i, c := range conditions {
		switch {
		case c.Type == schedulingv1beta1.DisruptionTarget:
			disrupted = &conditions[i].Reason
		case c.Type != schedulingv1beta1.PodGroupInitiallyScheduled:
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
func validatePodGroup(g *schedulingv1beta1.PodGroup) (errs field.ErrorList) {
	path, s := field.NewPath("spec"), &g.Spec
	if ref := s.WorkloadRef; ref != nil {
		at := path.Child("workloadRef")
		errs = validateName(ref.WorkloadName, at.Child("workloadName"), content.IsDNS1123Subdomain)
		errs = append(errs, validateName(ref.TemplateName, at.Child("templateName"), content.IsDNS1123Label)...)
	}
	return append(errs, validateTemplateFields(templateOf(s), path)...)
}

// templateOf returns the common fields of a group and a template.
func templateOf(s *schedulingv1beta1.PodGroupSpec) *schedulingv1beta1.PodGroupTemplate {
	return &schedulingv1beta1.PodGroupTemplate{
		SchedulingPolicy: s.SchedulingPolicy, SchedulingConstraints: s.SchedulingConstraints,
		ResourceClaims: s.ResourceClaims, DisruptionMode: s.DisruptionMode,
		PriorityClassName: s.PriorityClassName, Priority: s.Priority, PreemptionPolicy: s.PreemptionPolicy,
	}
}

// validateTemplateFields validates the common fields of a group and a group template.
func validateTemplateFields(t *schedulingv1beta1.PodGroupTemplate, path *field.Path) field.ErrorList {
	errs := validatePolicy(&t.SchedulingPolicy, path.Child("schedulingPolicy"))
	if t.SchedulingConstraints != nil {
		errs = append(errs, validateTopology(t.SchedulingConstraints.Topology,
			path.Child("schedulingConstraints", "topology"))...)
	}
	errs = append(errs, validateGroupClaims(t.ResourceClaims, path.Child("resourceClaims"))...)
	if mode := t.DisruptionMode; mode != nil {
		errs = append(errs, exactlyOne(path.Child("disruptionMode"),
			member{"single", mode.Single != nil}, member{"all", mode.All != nil})...)
	}
	if t.PriorityClassName != "" {
		errs = append(errs, validateName(t.PriorityClassName, path.Child("priorityClassName"),
			content.IsDNS1123Subdomain)...)
	}
	if p := t.Priority; p != nil && *p > highestPriority {
		errs = append(errs, field.Invalid(path.Child("priority"), *p, content.MaxError(highestPriority)))
	}
	policies := []schedulingv1beta1.PreemptionPolicy{
		schedulingv1beta1.PreemptNever, schedulingv1beta1.PreemptLowerPriority,
	}
	if p := t.PreemptionPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(path.Child("preemptionPolicy"), *p, policies))
	}
	return errs
}

// member is a field of a union, and whether it is set.
type member struct {
	name string
	set  bool
}

// exactlyOne returns an error unless one member of a union is set.
func exactlyOne(path *field.Path, members ...member) field.ErrorList {
	var all, set []string
	for _, m := range members {
		all = append(all, "`"+m.name+"`")
		if m.set {
			set = append(set, m.name)
		}
	}
	switch names := strings.Join(all, ", "); len(set) {
	case 0:
		return field.ErrorList{field.Invalid(path, "", "must specify one of: "+names)}
	case 1:
		return nil
	default:
		return field.ErrorList{field.Invalid(path, "{"+strings.Join(set, ", ")+"}",
			"must specify exactly one of: "+names)}
	}
}

func validatePolicy(p *schedulingv1beta1.PodGroupSchedulingPolicy, path *field.Path) field.ErrorList {
	errs := exactlyOne(path, member{"basic", p.Basic != nil}, member{"gang", p.Gang != nil})
	if p.Gang == nil {
		return errs
	}
	return append(errs, validateCount(p.Gang.MinCount, path.Child("gang", "minCount"))...)
}

// validateCount validates the number of pods of a gang.
func validateCount(count int32, path *field.Path) field.ErrorList {
	switch {
	case count == 0:
		return field.ErrorList{field.Required(path, "")}
	case count < 1:
		return field.ErrorList{field.Invalid(path, count, content.MinError(1))}
	}
	return nil
}

// validatePolicyUpdate validates a changed policy: only the number of pods of a gang may change.
func validatePolicyUpdate(
	now, was *schedulingv1beta1.PodGroupSchedulingPolicy, path *field.Path,
) (errs field.ErrorList) {
	if (now.Basic != nil) != (was.Basic != nil) || (now.Gang != nil) != (was.Gang != nil) {
		errs = exactlyOne(path, member{"basic", now.Basic != nil}, member{"gang", now.Gang != nil})
	}
	if (now.Basic != nil) != (was.Basic != nil) {
		errs = append(errs, immutable(path.Child("basic")))
	}
	switch at := path.Child("gang"); {
	case was.Gang == nil && now.Gang != nil:
		errs = append(errs, field.Invalid(at, nil, "field cannot be set once created"))
	case was.Gang != nil && now.Gang == nil:
		errs = append(errs, field.Invalid(at, nil, "field cannot be cleared once set"))
	case now.Gang != nil && now.Gang.MinCount != was.Gang.MinCount:
		errs = append(errs, validateCount(now.Gang.MinCount, at.Child("minCount"))...)
	}
	return errs
}

func validateTopology(topology []schedulingv1beta1.TopologyConstraint, path *field.Path) (errs field.ErrorList) {
	if len(topology) > 1 {
		return field.ErrorList{field.TooMany(path, len(topology), 1)}
	}
	for i, c := range topology {
		errs = append(errs, validateName(c.Key, path.Index(i).Child("key"), content.IsLabelKey)...)
	}
	return errs
}

func validateGroupClaims(claims []schedulingv1beta1.PodGroupResourceClaim, path *field.Path) (errs field.ErrorList) {
	if len(claims) > schedulingv1beta1.MaxPodGroupResourceClaims {
		return field.ErrorList{field.TooMany(path, len(claims), schedulingv1beta1.MaxPodGroupResourceClaims)}
	}
	errs = duplicates(claims, path, func(c schedulingv1beta1.PodGroupResourceClaim) string { return c.Name })
	for i, c := range claims {
		at := path.Index(i)
		errs = append(errs, exactlyOne(at, member{"resourceClaimName", c.ResourceClaimName != nil},
			member{"resourceClaimTemplateName", c.ResourceClaimTemplateName != nil})...)
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

// validatePodGroupUpdate validates a change: only the status and the number of pods of a gang may change.
func validatePodGroupUpdate(g, old *schedulingv1beta1.PodGroup, subresource string) (errs field.ErrorList) {
	if subresource == "status" {
		return validateGroupStatus(g, old)
	}
	path := field.NewPath("spec")
	if !equality.Semantic.DeepEqual(g.Spec.WorkloadRef, old.Spec.WorkloadRef) {
		errs = append(errs, immutable(path.Child("workloadRef")))
	}
	return append(errs, validateTemplateUpdate(templateOf(&g.Spec), templateOf(&old.Spec), path)...)
}

// validateTemplateUpdate validates a change of the common fields of a group and a group template.
func validateTemplateUpdate(now, was *schedulingv1beta1.PodGroupTemplate, path *field.Path) field.ErrorList {
	errs := validatePolicyUpdate(&now.SchedulingPolicy, &was.SchedulingPolicy, path.Child("schedulingPolicy"))
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"schedulingConstraints", now.SchedulingConstraints, was.SchedulingConstraints},
		{"resourceClaims", now.ResourceClaims, was.ResourceClaims},
		{"disruptionMode", now.DisruptionMode, was.DisruptionMode},
		{"priorityClassName", now.PriorityClassName, was.PriorityClassName},
		{"priority", now.Priority, was.Priority},
		{"preemptionPolicy", now.PreemptionPolicy, was.PreemptionPolicy},
	} {
		if equality.Semantic.DeepEqual(f.now, f.was) {
			continue
		}
		errs = append(errs, immutable(path.Child(f.name)))
		const most = schedulingv1beta1.MaxPodGroupResourceClaims
		if n := len(now.ResourceClaims); f.name == "resourceClaims" && n > most {
			errs = append(errs, field.TooMany(path.Child(f.name), n, most))
		}
	}
	return errs
}

func immutable(path *field.Path) *field.Error { return field.Invalid(path, nil, "field is immutable") }

func validateGroupStatus(g, old *schedulingv1beta1.PodGroup) field.ErrorList {
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
	if len(statuses) > schedulingv1beta1.MaxPodGroupResourceClaims {
		return append(errs, field.TooMany(path, len(statuses), schedulingv1beta1.MaxPodGroupResourceClaims))
	}
	errs = append(errs, duplicates(statuses, path,
		func(s schedulingv1beta1.PodGroupResourceClaimStatus) string { return s.Name })...)
	for i, s := range statuses {
		kept := slices.ContainsFunc(before, func(b schedulingv1beta1.PodGroupResourceClaimStatus) bool {
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
