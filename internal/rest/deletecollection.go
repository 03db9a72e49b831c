package rest

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// deleters is how many objects of a collection are deleted at a time: enough to share fsyncs, few enough to leave the
// store to others.
const deleters = 16

func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	listed, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	options, err := deleteOptions(r)
	if err != nil {
		return err
	}
	c.warnDependents(r.Context(), options)
	page, err := s.list(r.Context(), c, listed)
	if err != nil {
		return err
	}
	if err := s.deleteAll(r.Context(), c, page.entries, *options); err != nil {
		return err
	}
	return s.writeList(w, r, c, page, media)
}

// DeleteCollection deletes every object of the call's namespace (of all namespaces if it names none).
func (s *Server) DeleteCollection(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	if _, err := s.View.Fresh(ctx); err != nil {
		return err
	}
	var entries []*watchcache.Entry
	s.View.Collection(c.Resource.Prefix).Snapshot().Scan(c.Namespace, "", func(e *watchcache.Entry) bool {
		entries = append(entries, e)
		return true
	})
	return s.deleteAll(ctx, c, entries, o)
}

func (s *Server) deleteAll(ctx context.Context, c *Call, entries []*watchcache.Entry, o metav1.DeleteOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *watchcache.Entry) // unbuffered: a failure stops the rest at once
	var wg sync.WaitGroup
	for range min(deleters, len(entries)) {
		wg.Go(func() {
			for e := range work {
				one := *c
				one.Namespace, one.Name = e.Namespace, e.Name
				if _, err := s.Delete(ctx, &one, o); err != nil && !apierrors.IsNotFound(err) {
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
