package kinds

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/apps"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// namedStrictly has the names of new services begin with a letter.
func namedStrictly(services *catalog.Strategy) {
	validate := services.Validate
	services.Validate = func(ctx context.Context, obj object.Object) (errs field.ErrorList) {
		name, _ := object.Map(obj, "metadata")["name"].(string)
		for _, msg := range validation.NameIsDNS1035Label(name, false) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, msg))
		}
		return append(errs, validate(ctx, obj)...)
	}
}

// defaultPreemption lets groups of pods preempt other pods by default.
func defaultPreemption(groups *catalog.Strategy) {
	fill := groups.Default
	groups.Default = func(obj object.Object) {
		rule.SetDefault(object.Child(obj, "spec"), "preemptionPolicy", "PreemptLowerPriority")
		if fill != nil {
			fill(obj)
		}
	}
}

// liftRules allows the objects of a kind to violate the rules that features lift.
func (e Emulation) liftRules(name string, rules *catalog.Strategy, given map[string]bool) {
	if podSpecs[name] != nil && e.Has(comparingTolerations, given) {
		lift(rules, pod.Comparing)
	}
	if name == "statefulsets.apps" && e.Has(recreatingSets, given) {
		lift(rules, apps.NoRecreate)
	}
}

// lift allows all objects of a kind to violate a rule.
func lift(rules *catalog.Strategy, exception rule.Exception) {
	create, update := rules.Validate, rules.ValidateUpdate
	rules.Validate = func(ctx context.Context, obj object.Object) field.ErrorList {
		return create(rule.Allow(ctx, exception), obj)
	}
	rules.ValidateUpdate = func(ctx context.Context, obj, old object.Object, subresource string) field.ErrorList {
		return update(rule.Allow(ctx, exception), obj, old, subresource)
	}
}

// without has objects validated as without features.
func without(rules *catalog.Strategy, features ...string) {
	rules.Off = append(rules.Off, features...)
	if create := rules.Validate; create != nil {
		rules.Validate = func(ctx context.Context, obj object.Object) field.ErrorList {
			return create(rule.Without(ctx, features...), obj)
		}
	}
	if update := rules.ValidateUpdate; update != nil {
		rules.ValidateUpdate = func(ctx context.Context, obj, old object.Object, subresource string) field.ErrorList {
			return update(rule.Without(ctx, features...), obj, old, subresource)
		}
	}
}

// earlierJobs validates jobs as a release without some features does, and omits the default of one of them.
func (e Emulation) earlierJobs(jobs *catalog.Strategy, given map[string]bool) {
	const replaces = "JobPodReplacementPolicy"
	var off []string
	for _, name := range []string{
		"JobManagedBy", replaces, "MutablePodResourcesForSuspendedJobs", "MutableSchedulingDirectivesForSuspendedJobs",
	} {
		if !e.Has(name, given) {
			off = append(off, name)
		}
	}
	if len(off) == 0 {
		return
	}
	without(jobs, off...)
	if slices.Contains(off, replaces) {
		withoutDefault(jobs, "podReplacementPolicy")
	}
}

// withoutDefault removes the default of a field of the spec.
func withoutDefault(rules *catalog.Strategy, name string) {
	fill := rules.Default
	rules.Default = func(obj object.Object) {
		spec := object.Map(obj, "spec")
		_, chosen := spec[name]
		if fill(obj); !chosen {
			delete(spec, name)
		}
	}
}
