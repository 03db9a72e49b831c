package bootstraptoken

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/auth/token"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// cleaner deletes secrets of tokens when they expire. Its keys are the names of secrets.
type cleaner struct{ *part.Host }

func (c *cleaner) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.Secrets.Prefix && ev.Type != watchcache.Deleted && tokenSecret(ev.Entry) != nil {
		need(ev.Entry.Name)
	}
}

func (c *cleaner) Reconcile(ctx context.Context, name string) error {
	e := c.View.Collection(ref.Secrets.Prefix).Snapshot().Get(metav1.NamespaceSystem, name)
	if e == nil || e.Deleting {
		return nil
	}
	secret := tokenSecret(e)
	if secret == nil {
		return nil
	}
	left, expired := token.BootstrapRemaining(secret, c.Now())
	switch {
	case expired:
		return c.remove(ctx, name, types.UID(e.UID))
	case left > 0:
		return control.Again(left)
	}
	return nil
}

func (c *cleaner) remove(ctx context.Context, name string, uid types.UID) error {
	call, err := c.Verbs.Call(secrets, metav1.NamespaceSystem, name, control.ControllerUser("token-cleaner"))
	if err != nil {
		return err
	}
	_, err = c.Verbs.Delete(ctx, call, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil // another secret has replaced it
	}
	return control.IgnoreNotFound(err)
}
