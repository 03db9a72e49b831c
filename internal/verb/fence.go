package verb

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/verb/call"
)

// putNew stores the new object, unless its definition or its namespace is being deleted. The catalog and the namespace
// that the write started with may be outdated. An object stored after the cleanup had listed the contents would be left
// behind, and would reappear under a new definition of the same name.
func (w *write) putNew(ctx context.Context, raw []byte, also []store.Change) (revision int64, err error) {
	for {
		if fences, ok := w.fences(); ok {
			s := w.store.With(store.Options{TTL: ttl(w.call), UnlessFenced: fences, Sequence: w.sequence, Also: also,
				Behind: behind(w.call)})
			if revision, err = s.Create(ctx, w.call.Key(w.name), raw); !errors.Is(err, store.ErrFenced) {
				return revision, err
			}
		}
		if _, err := w.View().Fresh(ctx); err != nil {
			return 0, err
		}
		if err := w.stillThere(ctx); err != nil {
			return 0, err
		}
	}
}

// fences returns the uids of the definition and the namespace that a new object belongs to. Deleting either raises its
// fence (contentsFence). ok is false if the namespace has disappeared since admission.
func (w *write) fences() (uids []string, ok bool) {
	if w.call.Resource.Custom() {
		uids = append(uids, w.call.Resource.Definition.UID)
	}
	if w.call.Namespace != "" && w.lifecycle != nil {
		ns := w.View().Collection("namespaces").Snapshot().Get("", w.call.Namespace)
		if ns == nil {
			return nil, false
		}
		uids = append(uids, ns.UID)
	}
	return uids, true
}

// stillThere repeats the checks from the start of the request and returns the reason against a new object. nil means
// that only a namespace of the same name stood in the way, which has been deleted and recreated.
func (w *write) stillThere(ctx context.Context) error {
	c := w.call
	if c.Resource.Custom() {
		now := w.Catalog().Snapshot().Resource(c.Resource.Group, c.Resource.Plural)
		switch {
		case now == nil || now.Definition.UID != c.Resource.Definition.UID:
			return call.NotServed()
		case now.Terminating:
			return terminating(c, w.name)
		}
	}
	if w.lifecycle == nil {
		return nil
	}
	return w.lifecycle.Mutate(ctx, w.admission.attributes(ctx, c, admit.Create, w.name, &metav1.CreateOptions{}))
}

// contentsFence returns the uid whose fence the deletion of obj raises, "" if the kind has no contents.
func contentsFence(c *Call, obj object.Object) string {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.FencesContents {
		return ""
	}
	return object.String(object.Meta(obj), "uid")
}
