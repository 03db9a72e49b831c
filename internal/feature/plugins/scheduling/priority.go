package scheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/source"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const priorityClasses = "priorityclasses"

// priorities sets the priority of pods from their PriorityClass.
type priorities struct {
	view     *watchcache.View
	defaults *source.Source[*schedulingv1.PriorityClass] // classes marked as the global default
}

// Priority sets the priority of pods and pod groups from their class or the default one. A group without either has
// none.
func Priority(c plugin.Config) []plugin.Rule {
	p := &priorities{c.View,
		source.New(c.View.Collection(priorityClasses), func(e *watchcache.Entry) (*schedulingv1.PriorityClass, bool) {
			class, err := plugin.Decode[schedulingv1.PriorityClass](e)
			return class, err == nil && class.GlobalDefault
		})}
	rules := []plugin.Rule{
		{Plural: "pods", Operations: plugin.Creates, Mutate: p.set},
		{Plural: "pods", Operations: plugin.Updates, Mutate: keepPriority},
		{Group: "scheduling.k8s.io", Plural: "priorityclasses", Operations: plugin.Writes, Validate: p.checkDefault},
	}
	if c.Features["GenericWorkload"] {
		rules = append(rules, plugin.Rule{
			Group: "scheduling.k8s.io", Plural: "podgroups", Operations: plugin.Creates, Mutate: p.setGroup,
		})
	}
	return rules
}

// set sets the name, value and preemption policy of its class on a new pod. A value or policy that the pod sets must
// equal the class's.
func (p *priorities) set(ctx context.Context, a *admit.Attributes) error {
	spec := catalog.At(a.Object, "spec")
	class, err := p.of(ctx, a, catalog.Text(spec, "priorityClassName"))
	if err != nil {
		return err
	}
	if requested, ok := spec["priority"].(int64); ok && requested != int64(class.Value) {
		return admit.Forbidden(a,
			fmt.Errorf(
				"the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", requested, class.Value))
	}
	requested := catalog.Text(spec, "preemptionPolicy")
	if class.PreemptionPolicy != nil && requested != "" && requested != string(*class.PreemptionPolicy) {
		return admit.Forbidden(a,
			fmt.Errorf(
				"the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", requested, *class.PreemptionPolicy))
	}
	spec = a.Edit("spec")
	spec["priority"] = int64(class.Value)
	if class.Name != "" {
		spec["priorityClassName"] = class.Name
	}
	if class.PreemptionPolicy != nil {
		spec["preemptionPolicy"] = string(*class.PreemptionPolicy)
	}
	return nil
}

// setGroup sets the name and value of its class on a new group of pods. A value that the group sets must equal the
// class's.
func (p *priorities) setGroup(ctx context.Context, a *admit.Attributes) error {
	spec := catalog.At(a.Object, "spec")
	class, err := p.of(ctx, a, catalog.Text(spec, "priorityClassName"))
	if err != nil {
		return err
	}
	if requested, ok := spec["priority"].(int64); ok && requested != int64(class.Value) {
		return admit.Forbidden(a, fmt.Errorf("priority set in the pod group (%d) must match the priority computed (%d) "+
			"based on the priority class set in the spec", requested, class.Value))
	}
	spec = a.Edit("spec")
	spec["priority"] = int64(class.Value)
	if class.Name != "" {
		spec["priorityClassName"] = class.Name
	}
	return nil
}

// of returns the named class, or the default one for "". Without a default it is a class without a name.
func (p *priorities) of(ctx context.Context, a *admit.Attributes, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		if class := p.globalDefault(); class != nil {
			return class, nil
		}
		policy := corev1.PreemptLowerPriority
		return &schedulingv1.PriorityClass{PreemptionPolicy: &policy}, nil
	}
	class, err := plugin.Lookup[schedulingv1.PriorityClass](ctx, p.view, priorityClasses, "", name)
	if err != nil {
		return nil, fmt.Errorf("failed to resolve PriorityClass with name %s: %w", name, err)
	}
	if class == nil {
		return nil, admit.Forbidden(a, fmt.Errorf("no PriorityClass with name %v was found", name))
	}
	return class, nil
}

// globalDefault returns the default class, or nil if there is none. Concurrent requests may have created two; the lower
// value counts.
func (p *priorities) globalDefault() *schedulingv1.PriorityClass {
	var lowest *schedulingv1.PriorityClass
	for _, class := range p.defaults.List().Items {
		if lowest == nil || class.Value < lowest.Value {
			lowest = class
		}
	}
	return lowest
}

// keepPriority restores the plugin's values if an update omits them. Validation rejects any other change.
func keepPriority(_ context.Context, a *admit.Attributes) error {
	spec, old := catalog.At(a.Object, "spec"), catalog.At(a.Old, "spec")
	for _, name := range []string{"priority", "preemptionPolicy"} {
		if spec[name] == nil && old[name] != nil {
			a.Edit("spec")[name] = old[name]
		}
	}
	return nil
}

// checkDefault rejects a second default class.
func (p *priorities) checkDefault(_ context.Context, a *admit.Attributes) error {
	if a.Object["globalDefault"] != true {
		return nil
	}
	if class := p.globalDefault(); class != nil &&
		(a.Operation == admit.Create || class.Name != catalog.Text(a.Object, "metadata", "name")) {
		return admit.Forbidden(a,
			fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", class.Name))
	}
	return nil
}
