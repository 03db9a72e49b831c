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

// Mutate calls the mutators in order and stops at the first refusal. If one of them requests reinvocation
// (Reinvocation), all are called once more.
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

// Validate calls the validators in order and stops at the first refusal.
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

// RefusedBy begins the warning that names the refusing plugin, for a client that requests an explanation.
const RefusedBy = "refused by the admission plugin "

// explain warns the client about the refusing plugin, if it requests an explanation.
func explain(ctx context.Context, p Plugin) {
	if request.Explains(ctx) {
		request.Warn(ctx, RefusedBy+p.Name())
	}
}

func concerned(p Plugin, a *Attributes) bool {
	s, ok := p.(Selective)
	return !ok || s.Concerns(a.Resource)
}

// round is the state of a write between the two rounds of mutation.
type round struct {
	wanted, second bool
	plugins        map[string]*Reinvocation
}

// Reinvocation returns the named plugin's state for this write. name is the name of a Mutator with parts (webhooks,
// policies) are called again only if they request it and the object has changed since.
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

// Reinvocation selects the parts of a plugin for the second round: parts that request it and ran before the object's
// last change. Rules: "Reinvocation policy" in the Kubernetes documentation.
type Reinvocation struct {
	round  *round
	ran    map[string]bool // request reinvocation, but are not due yet
	due    map[string]bool
	output Object // the object as the plugin left it
}

// Begin starts a round of the plugin. In the second round, a change by other plugins since the first makes its parts
// due.
func (r *Reinvocation) Begin(obj Object) {
	if r.round.second && !reflect.DeepEqual(r.output, obj) {
		r.require()
	}
}

// Second reports whether this is the second round.
func (r *Reinvocation) Second() bool { return r.round.second }

// Skip reports whether a part must not be called now: the second round calls only due parts.
func (r *Reinvocation) Skip(part string) bool { return r.round.second && !r.due[part] }

// Changed records that a part has changed the object: earlier parts are due, and a second round is needed.
func (r *Reinvocation) Changed() {
	r.require()
	r.round.wanted = true
}

// Ran records the call of a part that requests reinvocation.
func (r *Reinvocation) Ran(part string) {
	if r.ran == nil {
		r.ran = map[string]bool{}
	}
	r.ran[part] = true
}

// End closes a round of the plugin. It keeps nothing if no part may become due.
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
