package verb

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// create stores a new object, unless what it belongs to (its definition, its namespace) is being deleted by now: the
// catalog and the namespace that the call began with may be some time old. An object that came after the search for
// what must be deleted would stay behind, and a definition of the same name would show it again.
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

// fences are the uids of what a new object belongs to. Writers who begin the deletion of one raise its fence (raise).
// It is not ok if the namespace has gone since admission let the object pass.
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

// stillThere says, as it would have been said at the beginning, what stands in the way of a new object. nil means that
// it was a namespace of the same name, which is gone and has been made anew.
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

// raise returns the options of the write that begins the deletion of obj.
func (c *Call) raise(obj object.Object) store.Options {
	o := store.Options{TTL: c.ttl(), Sequence: c.sequence}
	if c.Resource.Strategy != nil && c.Resource.Strategy.FencesContents {
		o.RaiseFence = object.String(object.Meta(obj), "uid")
	}
	return o
}
