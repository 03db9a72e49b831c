package verb

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// deleters is the number of concurrent deletions in a collection: enough to share fsyncs, few enough to leave the store
// to other clients.
const deleters = 16

// DeleteCollection deletes every object in the call's namespace, or in all namespaces if that is "".
func (v *Verbs) DeleteCollection(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	if _, err := v.View().Fresh(ctx); err != nil {
		return err
	}
	var entries []*watchcache.Entry
	v.View().Collection(c.Resource.Prefix).Snapshot().Scan(c.Namespace, "", func(e *watchcache.Entry) bool {
		entries = append(entries, e)
		return true
	})
	return v.DeleteAll(ctx, c, entries, o)
}

// DeleteAll deletes the objects of entries, several at a time.
func (v *Verbs) DeleteAll(ctx context.Context, c *Call, entries []*watchcache.Entry, o metav1.DeleteOptions) error {
	if err := v.mayDeleteAll(ctx, c, entries); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *watchcache.Entry) // unbuffered: a failure stops the rest at once
	var wg sync.WaitGroup
	for range min(deleters, len(entries)) {
		wg.Go(func() {
			for e := range work {
				if _, err := v.Delete(ctx, c.Named(e.Namespace, e.Name), o); err != nil && !apierrors.IsNotFound(err) {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, e := range entries {
		select {
		case work <- e:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

// mayDeleteAll returns the reason against a deletion of the objects of entries, before the first one is deleted.
func (v *Verbs) mayDeleteAll(ctx context.Context, c *Call, entries []*watchcache.Entry) error {
	if v.protections.of(c).Delete == nil {
		return nil
	}
	for _, e := range entries {
		one := c.Named(e.Namespace, e.Name)
		obj, err := v.Object(one, e)
		if err == nil {
			err = v.protections.mayDelete(ctx, one, obj)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
