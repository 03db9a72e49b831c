package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// bookmarkEvery is how often a watcher that allows bookmarks learns how far the log has gone.
const bookmarkEvery = time.Minute

// serveWatch streams changes of a collection until the client leaves, its timeout is over, the server stops, the kind
// is no longer served, or the client has been too slow to follow.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiateWatch(r)
	if err != nil {
		return err
	}
	options, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	if err := c.watchOne(options); err != nil {
		return err
	}
	sel, err := s.selector(c, options.LabelSelector, options.FieldSelector)
	if err != nil {
		return err
	}
	life := s.WatchAtLeast + rand.N(s.WatchAtLeast)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		life = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()

	st := &stream{s: s, c: c, sel: sel, form: media, bookmarks: options.AllowWatchBookmarks}
	from, initial, err := s.watchStart(ctx, c, options, sel)
	if err != nil {
		return err
	}
	watcher, err := s.View.Collection(c.Resource.Prefix).Watch(from)
	if err == nil {
		defer watcher.Close()
	}
	run := func(ctx context.Context, out sink) {
		st.out = out
		if err != nil {
			// After the parameters have been understood, what goes wrong is told inside the stream, as kube does it.
			st.fail(s.watchError(err, from))
			return
		}
		if (initial == nil || st.initial(ctx, initial, from, options)) && out.push() {
			st.follow(ctx, watcher, from)
		}
	}
	defer st.whileServed(cancel)()
	if request.IsWebSocket(r) {
		serveSocket(ctx, w, r, media, run)
		return nil
	}
	w.Header().Set("Content-Type", media.WatchType())
	w.WriteHeader(http.StatusOK)
	out := &frames{out: w, control: http.NewResponseController(w)}
	defer out.giveUp(ctx)()
	run(ctx, out)
	return nil
}

// watchOne makes a watch of the call's name, which is in the path (the old form /watch/…/name) or the field selector,
// one of that object.
func (c *Call) watchOne(o *metainternal.ListOptions) error {
	switch {
	case c.Name == "":
	case o.FieldSelector == nil || o.FieldSelector.Empty():
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.Name)
	default:
		if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != c.Name {
			return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	return nil
}

// watchStart returns the revision after which events are sent, and the snapshot to send first, nil if none is wanted.
func (s *Server) watchStart(ctx context.Context, c *Call, o *metainternal.ListOptions, sel *selector) (from int64,
	initial *watchcache.Snapshot, err error) {
	wantsInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && !wantsInitial {
		from, err = parseRevision(o.ResourceVersion)
		return from, nil, err
	}
	revision, err := s.catchUp(ctx, o.ResourceVersion)
	if err != nil {
		return 0, nil, err
	}
	if o.SendInitialEvents != nil && !wantsInitial {
		return revision, nil, nil
	}
	snapshot := sel.snapshot(s.View.Collection(c.Resource.Prefix))
	return snapshot.Revision, snapshot, nil
}

func (s *Server) watchError(err error, from int64) error {
	if errors.Is(err, watchcache.ErrExpired) {
		return tooOldWatch(from, s.View.Revision())
	}
	return err
}
