package aggregation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Leftovers is the controller that deletes the leftovers of namespaces.
const Leftovers = "namespace-leftovers-controller"

// cleanAgain is the interval for cleaning a namespace on a server that has not deleted everything yet.
const cleanAgain = 10 * time.Second

// cleaner deletes the objects of deleted namespaces on servers that answer again. A key is the name of a namespace, or
// groupKey with a group whose APIServices show the debts.
type cleaner struct{ *contents }

// groupKey begins the key of a group. No name of a namespace begins so.
const groupKey = "group:"

var (
	_ control.Requester = (*cleaner)(nil)
	_ control.Sweeper   = (*cleaner)(nil)
	_ control.Pacer     = (*cleaner)(nil)
)

// Rest implements control.Pacer: the conditions of APIServices change at most once a second.
func (c *cleaner) Rest(key string) time.Duration {
	if strings.HasPrefix(key, groupKey) {
		return time.Second
	}
	return 0
}

// Requests implements control.Requester: a server that has become available can be cleaned.
func (c *cleaner) Requests(need func(string)) {
	c.returned = func(group string) { c.needGroup(group, need) }
}

func (c *cleaner) needGroup(group string, need func(string)) {
	for _, namespace := range c.ledger.NamespacesOf(group) {
		need(namespace)
	}
}

// Observe implements control.Reconciler. A change of an APIService, also of its condition, may let its server be
// cleaned.
func (c *cleaner) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case ref.ConfigMaps.Prefix:
		if namespace := leftover.NamespaceOf(ev.Entry.Namespace, ev.Entry.Name); namespace != "" {
			need(namespace)
			for _, e := range []*watchcache.Entry{ev.Entry, ev.Prev} {
				for _, d := range leftover.ReadRecord(e).Debts() {
					need(groupKey + d.Group)
				}
			}
		}
	case ref.APIServices.Prefix:
		if s := read(ev.Entry); s != nil && s.Spec.Service != nil {
			need(groupKey + s.Spec.Group)
			c.needGroup(s.Spec.Group, need)
		}
	}
}

// Sweep implements control.Sweeper.
func (c *cleaner) Sweep(need func(string)) {
	for _, namespace := range c.ledger.Namespaces() {
		need(namespace)
	}
}

// Reconcile implements control.Reconciler.
func (c *cleaner) Reconcile(ctx context.Context, key string) error {
	if group, ok := strings.CutPrefix(key, groupKey); ok {
		return c.describeDebts(ctx, group)
	}
	return c.clean(ctx, key)
}

// clean deletes the leftovers of a namespace on all servers that answer.
func (c *cleaner) clean(ctx context.Context, namespace string) error {
	later := false
	var failures []error
	for _, d := range c.ledger.Record(namespace).Debts() {
		next := *d
		paid := c.pay(ctx, namespace, d, &next)
		later = later || next.Held != nil || paid == errAgain
		switch {
		case ctx.Err() != nil:
			return nil
		case paid == nil:
			c.host.Log.Info("leftovers of a deleted namespace are cleaned", "namespace", namespace, "group", d.Group,
				"service", d.Service)
			failures = append(failures, c.ledger.Change(ctx, namespace, d, nil))
		case !reflect.DeepEqual(d, &next):
			failures = append(failures, c.ledger.Change(ctx, namespace, d, &next))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if later {
		return control.Again(cleanAgain)
	}
	return nil
}

var (
	// errWaits is the result for a debt that waits for a change of an APIService, and errAgain for one to check again
	// later.
	errWaits = errors.New("waits for an APIService")
	errAgain = errors.New("is not clean yet")
)

// pay deletes the objects of a debt, and returns nil if none is left. Otherwise it sets the state of next.
func (c *cleaner) pay(ctx context.Context, namespace string, d, next *leftover.Debt) error {
	next.Held = nil
	remotes := c.successors(d)
	if len(remotes) == 0 {
		next.State = fmt.Sprintf("no APIService of the group has the service %s with the same caBundle; if another has its "+
			"objects, annotate it with %s: %[1]s", d.Service, leftoversOf)
		return errWaits
	}
	for _, r := range remotes {
		switch s := r.state.Load(); {
		case s == nil:
			next.State = fmt.Sprintf("APIService %s has not been checked yet", r.name)
			return errWaits
		case !s.available():
			next.State = fmt.Sprintf("APIService %s is not available", r.name)
			return errWaits
		case r.documents.Load().stale:
			next.State = fmt.Sprintf("the resources of APIService %s cannot be read", r.name)
			return errAgain
		}
	}
	left := 0
	for _, r := range remotes {
		for _, resource := range c.owed(r, d) {
			held, err := c.emptyOf(ctx, r, &resource, namespace)
			if err != nil {
				next.State = foreign.Text(err.Error())
				return errAgain
			}
			left += held.Objects
			next.Held = append(next.Held, held.Names...)
		}
	}
	if left > 0 {
		next.State = fmt.Sprintf("%d objects are deleted and wait for their finalizers", left)
		return errAgain
	}
	return nil
}

// successors returns the APIServices that have the objects of a debt: of the same group, with the same service and
// authorities, or with an administrator's confirmation.
func (c *cleaner) successors(d *leftover.Debt) []*remote {
	return slices.DeleteFunc(c.remotesOf(d.Group), func(r *remote) bool {
		return serverOf(&r.spec) != d.Server && !slices.Contains(c.confirmed(r), d.Service)
	})
}

// remotesOf returns the APIServices of a group in the order of their names.
func (c *cleaner) remotesOf(group string) (out []*remote) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.mu.remotes {
		if r.version.Group == group {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *remote) int { return cmp.Compare(a.name, b.name) })
	return out
}

// confirmed returns the services whose objects an APIService has by an administrator's confirmation.
func (c *cleaner) confirmed(r *remote) []string {
	e := c.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", r.name)
	if e == nil {
		return nil
	}
	s := read(e)
	if s == nil || s.Annotations[leftoversOf] == "" {
		return nil
	}
	return adopted(s.Annotations[leftoversOf])
}

// owed returns the resources to clean: all that the server lists, and the recorded ones that it does not list.
func (c *cleaner) owed(r *remote, d *leftover.Debt) []apidiscoveryv2.APIResourceDiscovery {
	all := c.holding(r)
	for _, name := range d.Resources {
		same := func(one apidiscoveryv2.APIResourceDiscovery) bool { return one.Resource == name }
		if !slices.ContainsFunc(all, same) {
			all = append(all, apidiscoveryv2.APIResourceDiscovery{
				Resource: name, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"list", "delete"},
			})
		}
	}
	return all
}
