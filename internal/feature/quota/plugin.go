package quota

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Plugin is the admission plugin ResourceQuota.
type Plugin struct {
	ledger *ledger
	// limited are resources that are forbidden in a namespace unless a quota covers them.
	limited []configuration.Limited

	mu struct {
		sync.Mutex
		turns map[string]chan struct{} // by namespace that has had a quota; full during a write
	}
}

var _ admit.Validator = (*Plugin)(nil)

// NewPlugin returns a plugin for a view with all objects stored in the storage version of their kind.
func NewPlugin(view *watchcache.View, c *catalog.Catalog, limited []configuration.Limited) *Plugin {
	asStored := func(_ *catalog.Resource, e *watchcache.Entry) ([]byte, error) { return e.JSON(), nil }
	return &Plugin{ledger: newLedger(view, c, asStored), limited: limited}
}

// Used returns the usage of the resources that a quota limits.
func (p *Plugin) Used(q *corev1.ResourceQuota) corev1.ResourceList {
	return p.ledger.used(q, q.Spec.Hard, sortedNames(q.Spec.Hard))
}

// Name returns kube's name for the plugin.
func (*Plugin) Name() string { return "ResourceQuota" }

// Validate rejects a write that exceeds a quota of its namespace. It serializes other writes that add usage with the
// others of the namespace.
func (p *Plugin) Validate(ctx context.Context, a *admit.Attributes) error {
	if a.Operation != admit.Create && a.Operation != admit.Update || a.Namespace == "" || !Counted(a.Resource) {
		return nil
	}
	quotas := p.ledger.view.Collection(ref.ResourceQuotas.Prefix).Snapshot()
	if len(p.limited) == 0 && quotas.Count(a.Namespace, "") == 0 {
		return nil
	}
	e := p.ledger.evaluatorOf(a.Resource)
	if !e.handles(a) {
		return nil
	}
	w, err := p.newWrite(ctx, a, e)
	if err != nil {
		return err
	}
	charges, err := w.assess(decode(quotas, a.Namespace), p.limited)
	if err != nil || len(charges) == 0 {
		return forbidden(a, err)
	}
	if a.DryRun {
		_, err := p.ask(ctx, a, w)
		return err
	}
	return p.inSequence(ctx, a, w)
}

// inSequence has a write happen when no other of its namespace does.
func (p *Plugin) inSequence(ctx context.Context, a *admit.Attributes, w *write) error {
	turn := p.turn(a.Namespace)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	end := func() { <-turn }
	seen, err := p.ask(ctx, a, w)
	if err != nil {
		end()
		return err
	}
	a.Sequence = &admit.Sequence{
		Name: "quota/" + a.Namespace, Seen: seen, End: end,
		Again: func(ctx context.Context) (int64, error) { return p.ask(ctx, a, w) },
	}
	return nil
}

// ask checks the charges of a write against the usage at a revision, which it returns.
func (p *Plugin) ask(ctx context.Context, a *admit.Attributes, w *write) (seen int64, err error) {
	if seen, err = p.ledger.view.Fresh(ctx); err != nil {
		return 0, err
	}
	quotas := p.ledger.view.Collection(ref.ResourceQuotas.Prefix).Snapshot()
	charges, err := w.assess(decode(quotas, a.Namespace), p.limited)
	if err != nil {
		return 0, forbidden(a, err)
	}
	for _, c := range charges {
		if err := w.fits(c, p.ledger.used(c.quota, c.quota.Status.Hard, sortedNames(c.amount))); err != nil {
			return 0, forbidden(a, err)
		}
	}
	return seen, nil
}

// forbidden words a refusal as admission does.
func forbidden(a *admit.Attributes, err error) error {
	var no refusal
	if errors.As(err, &no) {
		return admit.Forbidden(a, no.error)
	}
	return err
}

// newWrite measures the objects of a write.
func (p *Plugin) newWrite(ctx context.Context, a *admit.Attributes, e *evaluator) (*write, error) {
	w := &write{
		evaluator: e, resource: catalog.GroupResource{Group: a.Resource.Group, Resource: a.Resource.Plural},
		subresource: a.Subresource,
	}
	obj, old, err := a.In(ctx, a.Resource.Storage)
	if err != nil {
		return nil, err
	}
	w.raw = codec.AppendJSON(nil, obj)
	if w.obj, err = p.measure(e, w.raw); err != nil {
		return nil, err
	}
	if a.Operation == admit.Update {
		w.old, err = p.measure(e, codec.AppendJSON(nil, old))
	}
	return w, err
}

// measure returns the current usage of an object.
func (p *Plugin) measure(e *evaluator, raw []byte) (*measure, error) {
	m, err := e.measure(raw)
	if err != nil {
		return nil, err
	}
	return &measure{amounts: m.at(p.ledger.now()), scopes: m.scopes}, nil
}

// decode returns the quotas of a namespace.
func decode(quotas *watchcache.Snapshot, namespace string) (out []*corev1.ResourceQuota) {
	quotas.Scan(namespace, "", func(e *watchcache.Entry) bool {
		q := &corev1.ResourceQuota{}
		if json.Unmarshal(e.JSON(), q) == nil {
			out = append(out, q)
		}
		return true
	})
	return out
}

func (p *Plugin) turn(namespace string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.turns == nil {
		p.mu.turns = map[string]chan struct{}{}
	}
	if p.mu.turns[namespace] == nil {
		p.mu.turns[namespace] = make(chan struct{}, 1)
	}
	return p.mu.turns[namespace]
}
