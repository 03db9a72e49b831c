package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// UnsafeDeletion reports whether users with the permission may delete unreadable objects.
func (r *Reader) UnsafeDeletion() bool { return r.corrupt.Named }

// Heal retries an unreadable entry: its key may be available again.
func (r *Reader) Heal(ctx context.Context, c *call.Call, e *watchcache.Entry) (*watchcache.Entry, error) {
	collection := r.view.Collection(c.Resource.Prefix)
	if err := collection.Heal(ctx, e.Key()); err != nil {
		return nil, err
	}
	now := collection.Snapshot().Get(e.Namespace, e.Name)
	if now == nil {
		return nil, apierrors.NewNotFound(c.GroupResource(), e.Name)
	}
	return now, r.corrupt.For(c.Verb, now)
}

// readableFrom returns the start of a list if every object in its range is readable, else an error that names the
// unreadable objects. If the call skips unreadable objects, it gets a warning instead.
func (r *Reader) readableFrom(
	ctx context.Context, c *call.Call, sel *selector.Selector, start listStart,
) (listStart, error) {
	found := sel.Unreadable(start.snapshot, start.after, 1)
	if len(found) == 0 {
		return start, nil
	}
	collection := r.view.Collection(c.Resource.Prefix)
	if collection.IsCurrent(start.snapshot) { // the keys may be available again
		if _, err := r.Heal(ctx, c, found[0]); err == nil || apierrors.IsNotFound(err) {
			if err := collection.Heal(ctx); err != nil { // only if the first entry could be read, since it takes long
				return start, err
			}
			start.snapshot = sel.Snapshot(collection)
		}
	}
	found = sel.Unreadable(start.snapshot, start.after, corrupt.MaxListed+1)
	switch {
	case len(found) == 0:
		return start, nil
	case !c.SkipUnreadable:
		return start, r.corrupt.List(c.GroupResource(), found)
	}
	sel.SkipUnreadable = true
	request.Warn(ctx, fmt.Sprintf("%s %q cannot be read and is left out, and %d others", c.GroupResource(),
		found[0].Key(), len(found)-1))
	return start, nil
}
