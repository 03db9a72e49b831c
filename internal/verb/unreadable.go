package verb

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
)

// deleteUnreadable removes an unreadable object at once; its finalizers are unknown. A dry run only checks that the
// object is unreadable.
func (v *Verbs) deleteUnreadable(ctx context.Context, c *Call, dryRun bool) (*Result, error) {
	if err := v.admission.mayDeleteUnreadable(ctx, c); err != nil {
		return nil, err
	}
	for {
		if _, err := v.View().Fresh(ctx); err != nil {
			return nil, err
		}
		e := v.View().Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
		if e == nil {
			return nil, apierrors.NewNotFound(c.GroupResource(), c.Name)
		}
		if e.Unreadable() == nil {
			return nil, corrupt.Readable(c.GroupResource(), c.Name, v.store.Path(c.Key(c.Name)))
		}
		if now, err := v.Heal(ctx, c, e); now != nil && err == nil {
			continue // the object is readable after all
		}
		if dryRun {
			return &Result{Deleted: true}, nil
		}
		v.log.Warn("deletion of an object that cannot be read, without regard to its finalizers", "key", c.Key(c.Name),
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
