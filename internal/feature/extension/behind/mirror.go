package behind

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// resource is a mirrored kind of the host. All are cluster-scoped.
type resource struct {
	plural, path, kind string
	// optional is true if a host may lack it, or deny this server the read.
	optional bool
}

const registration = "/apis/admissionregistration.k8s.io/v1/"

// mirrored are the kinds of the host that this server needs.
var mirrored = []resource{
	{plural: "namespaces", path: "/api/v1/namespaces", kind: "Namespace"},
	{plural: "validatingwebhookconfigurations", kind: "ValidatingWebhookConfiguration"},
	{plural: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration"},
	{plural: "validatingadmissionpolicies", kind: "ValidatingAdmissionPolicy"},
	{plural: "validatingadmissionpolicybindings", kind: "ValidatingAdmissionPolicyBinding"},
	{plural: "mutatingadmissionpolicies", kind: "MutatingAdmissionPolicy", optional: true},
	{plural: "mutatingadmissionpolicybindings", kind: "MutatingAdmissionPolicyBinding", optional: true},
}

// mirror keeps copies of the objects of a resource in the store of this server, where it has its own.
type mirror struct {
	host     *Host
	resource resource
	own      *part.Host // set before run
	latch
}

// run mirrors until ctx ends.
func (m *mirror) run(ctx context.Context) error {
	path := m.resource.path
	if path == "" {
		path = registration + m.resource.plural
	}
	f := follower{
		host: m.host, path: path, query: url.Values{}, replace: m.replace,
		change: func(ctx context.Context, event watch.EventType, obj object.Object) error {
			if event == watch.Deleted {
				return m.drop(ctx, object.String(obj, "metadata", "name"))
			}
			return m.put(ctx, obj)
		},
		failed: func(err error) {
			m.set(err)
			switch {
			case err == nil:
				m.done()
			case m.resource.optional && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
				m.done()
			default:
				m.host.log.Warn("objects of the API server in front cannot be watched; retried",
					"resource", m.resource.plural, "error", err)
			}
		},
	}
	return f.run(ctx)
}

func (m *mirror) key(name string) string { return m.prefix() + "/" + name }

// prefix is where a whole server has the objects.
func (m *mirror) prefix() string {
	snap := m.own.Catalog.Snapshot()
	if r := snap.Resource("admissionregistration.k8s.io", m.resource.plural); r != nil {
		return r.Prefix
	}
	return m.resource.plural
}

// replace makes the copies equal to the objects of the host.
func (m *mirror) replace(ctx context.Context, items []object.Object) error {
	there := map[string]bool{}
	for _, item := range items {
		there[object.String(item, "metadata", "name")] = true
		if err := m.put(ctx, item); err != nil {
			return err
		}
	}
	if _, err := m.own.View.Fresh(ctx); err != nil {
		return err
	}
	var gone []string
	m.own.View.Collection(m.prefix()).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if !there[e.Name] {
			gone = append(gone, e.Name)
		}
		return true
	})
	for _, name := range gone {
		if err := m.drop(ctx, name); err != nil {
			return err
		}
	}
	_, err := m.own.View.Fresh(ctx)
	return err
}

// put copies one object.
func (m *mirror) put(ctx context.Context, obj object.Object) error {
	name := object.String(obj, "metadata", "name")
	delete(object.Meta(obj), "managedFields") // nothing here reads them
	obj["kind"] = m.resource.kind
	obj["apiVersion"] = "v1"
	if m.resource.path == "" {
		obj["apiVersion"] = "admissionregistration.k8s.io/v1"
	}
	raw := codec.EncodeStored(obj).JSON
	for {
		r, err := m.own.Store.Get(ctx, m.key(name))
		switch {
		case errors.Is(err, store.ErrNotFound):
			_, err = m.own.Store.Create(ctx, m.key(name), raw)
		case err == nil && string(r.Value) == string(raw):
			return nil
		case err == nil:
			_, err = m.own.Store.Update(ctx, m.key(name), raw, r.Revision)
		}
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			continue // another replica mirrors too
		}
		if err != nil {
			return fmt.Errorf("copy of %s %s: %w", m.resource.kind, name, err)
		}
		return nil
	}
}

// drop removes the copy of a deleted object.
func (m *mirror) drop(ctx context.Context, name string) error {
	for {
		r, err := m.own.Store.Get(ctx, m.key(name))
		if err == nil {
			_, err = m.own.Store.Delete(ctx, m.key(name), r.Revision)
		}
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("copy of %s %s: %w", m.resource.kind, name, err)
		}
		return nil
	}
}

// lifecycle rejects objects in namespaces that the host does not have or is deleting. It looks for a namespace that is
// not mirrored yet at the host, since it may be new.
type lifecycle struct {
	admit.Lifecycle
	host *Host
}

// Mutate implements admit.Mutator.
func (l lifecycle) Mutate(ctx context.Context, a *admit.Attributes) error {
	if a.Operation == admit.Create && a.Resource.Namespaced &&
		l.View.Collection(ref.Namespaces.Prefix).Snapshot().Get("", a.Namespace) == nil {
		var ns object.Object
		err := l.host.get(ctx, "/api/v1/namespaces/"+url.PathEscape(a.Namespace), nil, &ns)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("namespace %s: %w", a.Namespace, err))
		default:
			object.WholeNumbers(ns)
			if err := l.host.mirrors[0].put(ctx, ns); err != nil {
				return apierrors.NewInternalError(err)
			}
		}
	}
	return l.Lifecycle.Mutate(ctx, a)
}
