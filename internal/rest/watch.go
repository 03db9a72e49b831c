package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/codec"
	"github.com/bowsprit/bowsprit/internal/watchcache"
)

const (
	// bookmarkEvery is how often a watcher that allows bookmarks learns how far the log has gone.
	bookmarkEvery = time.Minute
	// watchAtLeast is the shortest life of a watch whose client sets none; up to as much again is added at random, so that
	// clients do not all come back at once. Kube's --min-request-timeout.
	watchAtLeast = 30 * time.Minute
)

// serveWatch streams changes of a collection until the client leaves, its timeout is over, the server stops, the kind is
// no longer served, or the client has been too slow to follow.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiateWatch(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if c.Name != "" { // the old form /watch/…/name
		query.Set("fieldSelector", "metadata.name="+c.Name)
	}
	options, err := listOptions(query)
	if err != nil {
		return err
	}
	sel, err := s.selector(c, options.LabelSelector, options.FieldSelector)
	if err != nil {
		return err
	}
	life := watchAtLeast + rand.N(watchAtLeast)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		life = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()

	st := &stream{s: s, c: c, sel: sel, form: media, out: w, flush: http.NewResponseController(w).Flush, bookmarks: options.AllowWatchBookmarks}
	from, initial, err := s.watchStart(ctx, c, options)
	if err != nil {
		return err
	}
	watcher, err := s.View.Collection(c.Resource.Prefix).Watch(from)
	w.Header().Set("Content-Type", media.WatchType())
	w.WriteHeader(http.StatusOK)
	if err != nil {
		// After the parameters have been understood, what goes wrong is told inside the stream, as kube does it.
		st.fail(s.watchError(err, from))
		return nil
	}
	defer watcher.Close()
	if initial != nil && !st.initial(ctx, initial, from, options) {
		return nil
	}
	if st.flush() != nil {
		return nil
	}
	st.follow(ctx, watcher, from)
	return nil
}

// watchStart returns the revision after which events are sent, and the snapshot to send first, nil if none is wanted.
func (s *Server) watchStart(ctx context.Context, c *Call, o *metainternal.ListOptions) (from int64, initial *watchcache.Snapshot, err error) {
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
	snapshot := s.View.Collection(c.Resource.Prefix).Snapshot()
	return snapshot.Revision, snapshot, nil
}

func (s *Server) watchError(err error, from int64) error {
	if errors.Is(err, watchcache.ErrExpired) {
		return tooOldWatch(from, s.View.Revision())
	}
	return err
}

// stream is one watch being written.
type stream struct {
	s         *Server
	c         *Call
	sel       *selector
	form      form
	out       http.ResponseWriter
	flush     func() error
	bookmarks bool
	rows      int // rows sent so far, in a watch of tables
}

// initial sends the state at the start as ADDED events and, if the client asked for the initial events by name, the
// bookmark that marks their end. It returns false if the client has gone.
func (st *stream) initial(ctx context.Context, snapshot *watchcache.Snapshot, revision int64, o *metainternal.ListOptions) bool {
	ok := true
	if st.s.Convert.Foreign(st.c.Resource) {
		ok = st.initialForeign(ctx, snapshot, func(e *watchcache.Entry) bool { return st.send(watch.Added, e) })
	} else {
		snapshot.Scan(st.c.Namespace, "", func(e *watchcache.Entry) bool {
			if st.sel.matches(e) {
				ok = st.send(watch.Added, e)
			}
			return ok
		})
	}
	if ok && o.SendInitialEvents != nil && *o.SendInitialEvents && o.AllowWatchBookmarks {
		ok = st.bookmark(revision, true)
	}
	return ok
}

// follow sends events until something ends the watch.
func (st *stream) follow(ctx context.Context, w *watchcache.Watcher, from int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer st.whileServed(cancel)()
	delivered := from
	for {
		turn, end := context.WithTimeout(ctx, bookmarkEvery)
		events, revision, err := w.Next(turn)
		end()
		changes, failure := st.changes(ctx, events)
		if failure != nil {
			if ctx.Err() == nil {
				st.fail(failure)
			}
			return
		}
		for _, ev := range changes {
			if !st.event(ev) {
				return
			}
		}
		delivered = max(delivered, revision)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			if st.bookmarks && delivered > from {
				st.bookmark(delivered, false) // spares the client a look back when it resumes
				_ = st.flush()
			}
			return
		case errors.Is(err, context.DeadlineExceeded):
			if st.bookmarks && !st.bookmark(delivered, false) {
				return
			}
		default:
			st.fail(st.s.watchError(err, delivered))
			return
		}
		if st.flush() != nil {
			return
		}
	}
}

// whileServed ends the watch when its kind is no longer served in the form that the watch began with. It returns the
// function that stops looking.
func (st *stream) whileServed(end func()) (stop func()) {
	c := st.c
	var mu sync.Mutex // guards forget, which the callback replaces
	var forget func() bool
	var look func(life context.Context)
	look = func(life context.Context) {
		mu.Lock()
		defer mu.Unlock()
		forget = context.AfterFunc(life, func() {
			res, ver := st.s.Catalog.Snapshot().Served(c.Resource.Group, c.Version.Name, c.Resource.Plural)
			if ver == nil || res.Definition.UID != c.Resource.Definition.UID || res.Definition.Generation != c.Resource.Definition.Generation {
				end()
				return
			}
			look(res.Life()) // only its status changed
		})
	}
	look(c.Resource.Life())
	return func() {
		mu.Lock()
		defer mu.Unlock()
		forget()
	}
}

// event sends one change as the selector sees it: an object that comes into view is ADDED, one that leaves it is DELETED.
func (st *stream) event(ev change) bool {
	if st.c.Namespace != "" && ev.entry.Namespace != st.c.Namespace {
		return true
	}
	if st.sel.all() {
		return st.frame(ev, watchType(ev.Type))
	}
	now := ev.Type != watchcache.Deleted && st.sel.matches(ev.entry)
	before := ev.Type != watchcache.Added && st.sel.matches(ev.prev)
	switch {
	case now && before:
		return st.frame(ev, watch.Modified)
	case now:
		return st.frame(ev, watch.Added)
	case before && ev.Type == watchcache.Deleted:
		return st.frame(ev, watch.Deleted)
	case before:
		// The client gets the object as it last saw it, with the revision of the change that took it away.
		return st.send(watch.Deleted, ev.prev.At(ev.Revision))
	}
	return true
}

func watchType(t watchcache.EventType) watch.EventType {
	switch t {
	case watchcache.Added:
		return watch.Added
	case watchcache.Deleted:
		return watch.Deleted
	}
	return watch.Modified
}

// frameKey names a frame among those that an event keeps: all watchers of a version and form share one.
type frameKey struct {
	version *catalog.Version
	form    form
	kind    watch.EventType
}

// frame sends an event whose bytes are encoded once for all watchers.
func (st *stream) frame(ev change, kind watch.EventType) bool {
	if st.form.As == "Table" {
		return st.send(kind, ev.entry)
	}
	raw, err := ev.Encoded(frameKey{st.c.Version, st.form, kind}, func() ([]byte, error) {
		return st.encode(kind, ev.entry)
	})
	if err != nil {
		st.fail(err)
		return false
	}
	_, err = st.out.Write(raw)
	return err == nil
}

func (st *stream) send(kind watch.EventType, e *watchcache.Entry) bool {
	raw, err := st.encode(kind, e)
	if err != nil {
		st.fail(err)
		return false
	}
	_, err = st.out.Write(raw)
	return err == nil
}

// encode makes the frame of an entry.
func (st *stream) encode(kind watch.EventType, e *watchcache.Entry) ([]byte, error) {
	raw, err := st.s.served(st.c, e)
	if err != nil {
		return nil, err
	}
	return st.wrap(kind, raw)
}

// wrap puts an object of the call's version into a frame, in the form that the client asked for.
func (st *stream) wrap(kind watch.EventType, raw []byte) ([]byte, error) {
	body, err := st.transformEvent(raw)
	if err != nil {
		return nil, err
	}
	return st.form.frame(kind, body, st.c)
}

// bookmark tells the client that it has seen everything up to revision. end marks the end of the initial events.
func (st *stream) bookmark(revision int64, end bool) bool {
	meta := Object{"resourceVersion": strconv.FormatInt(revision, 10)}
	if end {
		meta["annotations"] = Object{metav1.InitialEventsAnnotationKey: "true"}
	}
	raw := codec.AppendJSON(nil, Object{"kind": st.c.Resource.Kind, "apiVersion": st.c.apiVersion(), "metadata": meta})
	frame, err := st.wrap(watch.Bookmark, raw)
	if err != nil {
		st.fail(err)
		return false
	}
	_, err = st.out.Write(frame)
	return err == nil
}

// fail ends a stream with an ERROR event.
func (st *stream) fail(err error) {
	status := codec.StatusOf(err)
	raw, _ := codec.EncodeStatus(status, st.form.Media) // strings and numbers only
	if st.form.Type == codec.CBOR {
		raw, _ = codec.ToCBOR(raw)
	}
	_, _ = st.out.Write(codec.WatchFrame(st.form.Media, string(watch.Error), raw))
	_ = st.flush()
}
