package verb

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// create stores a new object, unless its definition or its namespace is being deleted. The catalog and the namespace
// that the call started with may be outdated. An object stored after the cleanup had listed the contents would be left
// behind, and would reappear under a new definition of the same name.
func (w *writer) create(ctx context.Context, c *Call, name string, stored []byte, also []store.Change) (revision int64,
	err error) {
	for {
		if fences, ok := w.fences(c); ok {
			w := w.store.With(store.Options{TTL: c.ttl(), UnlessFenced: fences, Sequence: c.sequence, Also: also})
			if revision, err = w.Create(ctx, c.key(name), stored); !errors.Is(err, store.ErrFenced) {
				return revision, err
			}
		}
		if _, err := w.view.Fresh(ctx); err != nil {
			return 0, err
		}
		if err := w.stillThere(ctx, c, name); err != nil {
			return 0, err
		}
	}
}

// fences returns the uids of the definition and the namespace that a new object belongs to. Deleting either raises its
// fence (raise). ok is false if the namespace has disappeared since admission.
func (w *writer) fences(c *Call) (uids []string, ok bool) {
	if c.Resource.Custom() {
		uids = append(uids, c.Resource.Definition.UID)
	}
	if c.Namespace != "" && w.lifecycle != nil {
		ns := w.view.Collection("namespaces").Snapshot().Get("", c.Namespace)
		if ns == nil {
			return nil, false
		}
		uids = append(uids, ns.UID)
	}
	return uids, true
}

// stillThere repeats the checks from the start of the request and returns the reason against a new object. nil means
// that only a namespace of the same name stood in the way, which has been deleted and recreated.
func (w *writer) stillThere(ctx context.Context, c *Call, name string) error {
	if c.Resource.Custom() {
		now := w.catalog.Snapshot().Resource(c.Resource.Group, c.Resource.Plural)
		switch {
		case now == nil || now.Definition.UID != c.Resource.Definition.UID:
			return NotServed()
		case now.Terminating:
			return terminating(c, "create")
		}
	}
	if w.lifecycle == nil {
		return nil
	}
	return w.lifecycle.Mutate(ctx,
		w.admission.admissionAttributes(ctx, c, admit.Create, name, &metav1.CreateOptions{}))
}

// raise returns the store options of the write that starts the deletion of obj.
func (c *Call) raise(obj object.Object) store.Options {
	o := store.Options{TTL: c.ttl(), Sequence: c.sequence}
	if c.Resource.Strategy != nil && c.Resource.Strategy.FencesContents {
		o.RaiseFence = object.String(object.Meta(obj), "uid")
	}
	return o
}
