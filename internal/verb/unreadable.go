package verb

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// UnsafeDeletion reports whether users with the permission may delete unreadable objects.
func (r *Reader) UnsafeDeletion() bool { return r.corrupt.Named }

// heal retries an unreadable entry: its key may be available again.
func (r *Reader) heal(ctx context.Context, c *Call, e *watchcache.Entry) (*watchcache.Entry, error) {
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
	ctx context.Context, c *Call, sel *selector.Selector, start listStart,
) (listStart, error) {
	found := sel.Unreadable(start.snapshot, start.after, 1)
	if len(found) == 0 {
		return start, nil
	}
	collection := r.view.Collection(c.Resource.Prefix)
	if collection.IsCurrent(start.snapshot) { // the keys may be available again
		if _, err := r.heal(ctx, c, found[0]); err == nil || apierrors.IsNotFound(err) {
			if err := collection.Heal(ctx); err != nil { // only if the first entry could be read, since it takes long
				return start, err
			}
			start.snapshot = sel.Snapshot(collection)
		}
	}
	found = sel.Unreadable(start.snapshot, start.after, corrupt.Listed+1)
	switch {
	case len(found) == 0:
		return start, nil
	case !c.SkipUnreadable:
		return start, r.corrupt.List(c.GroupResource(), found)
	}
	sel.SkipUnreadable = true
	request.Warn(ctx, fmt.Sprintf("%s %q cannot be read and is left out, and %d others", c.GroupResource(), found[0].Key(),
		len(found)-1))
	return start, nil
}

// deleteUnreadable removes an unreadable object at once; its finalizers are unknown.
func (v *Verbs) deleteUnreadable(ctx context.Context, c *Call) (*Result, error) {
	if err := v.admission.mayDeleteUnreadable(ctx, c); err != nil {
		return nil, err
	}
	for {
		if _, err := v.view.Fresh(ctx); err != nil {
			return nil, err
		}
		e := v.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
		if e == nil || e.Unreadable() == nil {
			return nil, corrupt.NotCorrupt(c.GroupResource(), c.Name)
		}
		if now, err := v.heal(ctx, c, e); now != nil && err == nil {
			continue // the object is readable after all
		}
		v.log.Warn("deletion of an object that cannot be read, without regard to its finalizers", "key", c.key(c.Name),
			"user", c.User.GetName())
		gone, err := v.erase(ctx, c, nil, e.Revision)
		switch {
		case retry(err):
			continue
		case err != nil:
			return nil, storeError(err, c, c.Name)
		}
		return &Result{Deleted: true}, v.waitVisible(ctx, c, gone)
	}
}

// mayDeleteUnreadable checks that the user may delete unreadable objects.
func (ad *admission) mayDeleteUnreadable(ctx context.Context, c *Call) error {
	if c.Subresource != "" {
		return corrupt.Forbidden(c.GroupResource(), c.Name, c.Subresource, "", nil)
	}
	if ad.authorizer == nil {
		return apierrors.NewInternalError(errors.New("no authorizer provided, unable to authorize unsafe delete"))
	}
	decision, err := ad.authorizer.Authorize(ctx, c.User, &request.Info{
		IsResource: true, Verb: corrupt.Verb, Group: c.Resource.Group, Version: c.Version.Name,
		Namespace: c.Namespace, Resource: c.Resource.Plural, Name: c.Name,
	})
	if decision.Allowed() {
		return nil
	}
	return corrupt.Forbidden(c.GroupResource(), c.Name, "", decision.Reason, err)
}
