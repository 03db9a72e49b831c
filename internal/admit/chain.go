package admit

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Chain is the ordered list of plugins. Metrics may be nil.
type Chain struct {
	Plugins []Plugin
	Metrics *Metrics
}

// Mutate asks each mutator in turn and stops at the first refusal. If one of them demands it (Reinvoke), all are asked
// a second time, and no more than that.
func (c Chain) Mutate(ctx context.Context, a *Attributes) error {
	watch := c.Metrics.start(admitting, a.Operation)
	err := c.mutate(ctx, a, &watch)
	if err == nil && a.round.wanted {
		a.round.second = true
		err = c.mutate(ctx, a, &watch)
	}
	watch.stop(err)
	return err
}

func (c Chain) mutate(ctx context.Context, a *Attributes, watch *stopwatch) error {
	for _, p := range c.Plugins {
		if m, ok := p.(Mutator); ok && concerned(p, a) {
			err := m.Mutate(ctx, a)
			watch.lap(p.Name(), err)
			if err != nil {
				explain(ctx, p)
				return err
			}
		}
	}
	return nil
}

// Validate asks each validator in turn and stops at the first refusal.
func (c Chain) Validate(ctx context.Context, a *Attributes) error {
	watch := c.Metrics.start(validating, a.Operation)
	err := c.validate(ctx, a, &watch)
	watch.stop(err)
	return err
}

func (c Chain) validate(ctx context.Context, a *Attributes, watch *stopwatch) error {
	for _, p := range c.Plugins {
		if v, ok := p.(Validator); ok && concerned(p, a) {
			err := v.Validate(ctx, a)
			watch.lap(p.Name(), err)
			if err != nil {
				explain(ctx, p)
				return err
			}
		}
	}
	return nil
}

// RefusedBy begins the warning that names the plugin which has refused a write, for a client that asks why.
const RefusedBy = "refused by the admission plugin "

// explain says which plugin has refused a write, if the client asks why.
func explain(ctx context.Context, p Plugin) {
	if request.Explains(ctx) {
		request.Warn(ctx, RefusedBy+p.Name())
	}
}

func concerned(p Plugin, a *Attributes) bool {
	s, ok := p.(Selective)
	return !ok || s.Concerns(a.Resource)
}

// round is what a write's attributes remember between the two rounds of mutation.
type round struct {
	wanted, second bool
	plugins        map[string]*Reinvocation
}

// Reinvocation returns what the named plugin remembers about this write. name is that of a Mutator whose parts
// (webhooks, policies) are called again only if they ask for it and the object has changed since.
func (a *Attributes) Reinvocation(name string) *Reinvocation {
	if a.round.plugins == nil {
		a.round.plugins = map[string]*Reinvocation{}
	}
	r := a.round.plugins[name]
	if r == nil {
		r = &Reinvocation{round: &a.round}
		a.round.plugins[name] = r
	}
	return r
}

// Reinvocation decides which parts of a plugin are called in the second round: those that ask for it and that ran
// before the object's last change. The rules are those of "Reinvocation policy" in the Kubernetes documentation.
type Reinvocation struct {
	round  *round
	ran    map[string]bool // asked to be called again, not yet due
	due    map[string]bool
	output Object // the object as the plugin left it
}

// Begin opens a round of the plugin. In the second one, a change that others have made since the first is one that its
// parts have not seen.
func (r *Reinvocation) Begin(obj Object) {
	if r.round.second && !reflect.DeepEqual(r.output, obj) {
		r.require()
	}
}

// Second reports whether this is the second round.
func (r *Reinvocation) Second() bool { return r.round.second }

// Skip reports whether a part is not to be called now: in the second round nothing is called that is not due.
func (r *Reinvocation) Skip(part string) bool { return r.round.second && !r.due[part] }

// Changed notes that a part has changed the object: what ran before is due, and a second round is needed.
func (r *Reinvocation) Changed() {
	r.require()
	r.round.wanted = true
}

// Ran notes that a part that asks for reinvocation has been called.
func (r *Reinvocation) Ran(part string) {
	if r.ran == nil {
		r.ran = map[string]bool{}
	}
	r.ran[part] = true
}

// End closes a round of the plugin. Nothing is kept if no part may become due.
func (r *Reinvocation) End(obj Object) {
	if len(r.ran) > 0 && !r.round.second {
		r.output = runtime.DeepCopyJSON(obj)
	}
}

func (r *Reinvocation) require() {
	if r.due == nil {
		r.due = map[string]bool{}
	}
	for part := range r.ran {
		r.due[part] = true
	}
	clear(r.ran)
}
