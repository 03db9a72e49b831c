package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// namespaces empties deleted namespaces, and removes them when they are empty.
type namespaces struct {
	Config
	// dying belongs to the view's goroutine: the namespaces to check when one of their remaining objects is deleted.
	dying map[string]bool
	// need requests a reconciliation of a namespace.
	need func(string)
	// overdue are the namespaces with a timer for the end of the grace for silent servers.
	overdue struct {
		sync.Mutex
		timers map[string]bool
	}
}

func newNamespaces(c Config) *namespaces {
	n := &namespaces{Config: c, dying: map[string]bool{}}
	n.overdue.timers = map[string]bool{}
	return n
}

// Requests implements Requester.
func (n *namespaces) Requests(need func(string)) { n.need = need }

var namespacesResource = catalog.GroupResource{Resource: "namespaces"}

func (n *namespaces) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case ev.Collection.Prefix() == "namespaces":
		if ev.Type == watchcache.Deleted {
			delete(n.dying, ev.Entry.Name)
		} else if ev.Entry.Deleting {
			n.dying[ev.Entry.Name] = true
			need(ev.Entry.Name)
		}
	case ev.Type == watchcache.Deleted && n.dying[ev.Entry.Namespace]:
		need(ev.Entry.Namespace)
	}
}

func (n *namespaces) Reconcile(ctx context.Context, name string) error {
	entry := n.View.Collection("namespaces").Snapshot().Get("", name)
	if entry == nil || !entry.Deleting {
		return nil
	}
	if finalizers, found := entry.Field("spec.finalizers"); !found || finalizers == "[]" {
		return nil // emptied; the finalizers of its metadata belong to other controllers
	}
	// Pods are deleted before the objects they use (OrderedNamespaceDeletion): while there are any, everything else
	// stays.
	failures := n.deleteContent(ctx, name, func(r *catalog.Resource) bool { return isPods(r) })
	if _, err := n.View.Fresh(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(n.remaining(name), func(r remains) bool { return r.resource == podsRemain }) {
		failures = append(failures, n.deleteContent(ctx, name, func(r *catalog.Resource) bool { return !isPods(r) })...)
		if _, err := n.View.Fresh(ctx); err != nil {
			return err
		}
	}
	left := n.remaining(name)
	elsewhere := n.emptyElsewhere(ctx, name)
	failures = append(failures, elsewhere.Failures...)
	for _, held := range elsewhere.Left {
		left = append(left, remains{resource: held.Resource, objects: held.Objects, finalizers: held.Finalizers})
	}
	later, err := n.podsLate(entry, left)
	if err != nil && len(failures) == 0 {
		failures = append(failures, err)
	}
	silent := elsewhere.Silent
	if len(silent) > 0 && len(failures) == 0 && len(left) == 0 && n.graceOver(entry) {
		if err := n.Contents.Leave(ctx, entry, silent); err == nil {
			return n.finalize(ctx, name)
		} else {
			failures = append(failures, err)
		}
	}
	undiscovered, unanswered := errorsOf(silent)
	if err := n.report(ctx, name, left, slices.Concat(failures, unanswered), undiscovered); err != nil {
		return err
	}
	if len(elsewhere.Left)+len(silent) > 0 && later == nil {
		later = Again(elsewhereAgain) // objects that are not stored here cause no event
	}
	all := slices.Concat(failures, unanswered, undiscovered)
	if len(all) > 0 || len(left) > 0 {
		n.hangs(entry, left, all)
		if later != nil && len(failures) == 0 {
			return later
		}
		return errors.Join(append(all, later)...) // the deletion of the rest triggers the next run
	}
	return n.finalize(ctx, name)
}

// emptyElsewhere deletes the contents of a namespace on other servers.
func (n *namespaces) emptyElsewhere(ctx context.Context, name string) Elsewhere {
	if n.Contents == nil {
		return Elsewhere{}
	}
	return n.Contents.Empty(ctx, name)
}

// graceOver reports whether the deletion of a namespace has waited long enough for silent servers. Before that, it has
// the namespace looked at again when the time is over.
func (n *namespaces) graceOver(ns *watchcache.Entry) bool {
	deleted, _ := ns.Field("metadata.deletionTimestamp")
	since, err := time.Parse(time.RFC3339, deleted)
	if err != nil || n.NamespaceGrace < 0 {
		return false
	}
	rest := since.Add(n.NamespaceGrace).Sub(n.Now())
	if rest <= 0 {
		return true
	}
	n.overdue.Lock()
	defer n.overdue.Unlock()
	if !n.overdue.timers[ns.Name] {
		n.overdue.timers[ns.Name] = true
		n.AfterFunc(rest, func() {
			n.overdue.Lock()
			delete(n.overdue.timers, ns.Name)
			n.overdue.Unlock()
			n.need(ns.Name)
		})
	}
	return false
}

// elsewhereAgain is the interval for checking other servers' objects in a namespace.
const elsewhereAgain = 2 * time.Second

// hangsAfter is how long the deletion of a namespace may take before the log reports the cause.
const hangsAfter = 30 * time.Second

// hangs logs the causes that delay the deletion of a namespace.
func (n *namespaces) hangs(ns *watchcache.Entry, left []remains, failures []error) {
	deleted, _ := ns.Field("metadata.deletionTimestamp")
	since, err := time.Parse(time.RFC3339, deleted)
	if err != nil || n.Now().Sub(since) < hangsAfter {
		return
	}
	var remaining []string
	for _, r := range left {
		remaining = append(remaining, fmt.Sprint(r.resource, " ", slices.Sorted(maps.Keys(r.finalizers))))
	}
	n.Log.Warn("deletion of a namespace hangs; it continues when the remaining objects are gone", "namespace", ns.Name,
		"since", deleted, "left", remaining, "error", errors.Join(failures...))
}

func isPods(r *catalog.Resource) bool { return r.Group == "" && r.Plural == "pods" }

// deleteContent deletes every object in the namespace of the chosen kinds, including kinds that are no longer served.
func (n *namespaces) deleteContent(ctx context.Context, name string, chosen func(*catalog.Resource) bool) []error {
	// Override each kind's default: nothing is orphaned, since everything goes.
	background := metav1.DeletePropagationBackground
	var errs []error
	n.each(name, func(r *catalog.Resource, _ *watchcache.Snapshot) {
		if !chosen(r) {
			return
		}
		call, err := n.Verbs.Call(catalog.GroupResource{Group: r.Group, Resource: r.Plural}, name, "",
			ControllerUser("namespace-controller"))
		if err == nil {
			err = n.Verbs.DeleteCollection(ctx, call, metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err != nil {
			errs = append(errs, err)
		}
	})
	return errs
}

// each calls f for the namespaced resources that have objects in the namespace.
func (n *namespaces) each(name string, f func(*catalog.Resource, *watchcache.Snapshot)) {
	n.Catalog.Snapshot().Resources(func(r *catalog.Resource) {
		if !r.Namespaced || r.Secondary {
			return
		}
		if snapshot := n.View.Collection(r.Prefix).Snapshot(); snapshot.Count(name, "") > 0 {
			f(r, snapshot)
		}
	})
}

// remaining counts the remaining objects in the namespace.
func (n *namespaces) remaining(name string) []remains {
	var all []remains
	n.each(name, func(r *catalog.Resource, snapshot *watchcache.Snapshot) {
		left := remains{resource: r.Plural + "." + r.Group, finalizers: map[string]int{}}
		snapshot.Scan(name, "", func(e *watchcache.Entry) bool {
			left.objects++
			for _, f := range Finalizers(e) {
				left.finalizers[f]++
			}
			return true
		})
		all = append(all, left)
	})
	return all
}

// podsLate returns an error if pods remain after their grace period although no finalizer holds them. During the grace
// period it returns when to check again.
func (n *namespaces) podsLate(ns *watchcache.Entry, left []remains) (later, late error) {
	i := slices.IndexFunc(left, func(r remains) bool { return r.resource == podsRemain })
	if i < 0 || len(left[i].finalizers) > 0 {
		return nil, nil
	}
	deleted, _ := ns.Field("metadata.deletionTimestamp")
	since, err := time.Parse(time.RFC3339, deleted)
	if err != nil {
		return nil, err
	}
	var longest time.Duration
	n.View.Collection("pods").Snapshot().Scan(ns.Name, "", func(e *watchcache.Entry) bool {
		if phase, _ := e.Field("status.phase"); phase != string(corev1.PodSucceeded) &&
			phase != string(corev1.PodFailed) {
			text, _ := e.Field("spec.terminationGracePeriodSeconds")
			seconds, _ := strconv.ParseInt(text, 10, 64)
			longest = max(longest, time.Duration(seconds)*time.Second)
		}
		return true
	})
	if n.Now().Sub(since) < longest {
		return Again(longest/2 + time.Second), nil
	}
	return nil, fmt.Errorf("unexpected items still remain in namespace: %s for gvr: /v1, Resource=pods", ns.Name)
}

// report keeps the namespace's conditions true.
func (n *namespaces) report(
	ctx context.Context, name string, left []remains, failures, unknown []error,
) error {
	return n.update(ctx, name, "status", func(ns object.Object) error {
		return setConditions(ns, withUnknown(namespaceConditions(left, failures), unknown), n.Now())
	})
}

// finalize removes Kubernetes' finalizer from the namespace; the last finalizer's removal deletes it.
func (n *namespaces) finalize(ctx context.Context, name string) error {
	return n.update(ctx, name, "finalize", func(ns object.Object) error {
		spec, _, err := unstructured.NestedStringSlice(ns, "spec", "finalizers")
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(ns, without(spec, "kubernetes"), "spec", "finalizers")
	})
}

func (n *namespaces) update(ctx context.Context, name, subresource string, change func(object.Object) error) error {
	call, err := n.Verbs.Call(namespacesResource, "", name, ControllerUser("namespace-controller"))
	if err != nil {
		return err
	}
	call = call.Under(subresource)
	_, err = n.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(ns object.Object) (object.Object, error) {
			return ns, change(ns)
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
