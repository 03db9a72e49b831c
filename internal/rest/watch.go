package rest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// bookmarkEvery is the interval of bookmarks in watches that allow them.
const bookmarkEvery = time.Minute

// serveWatch streams changes of a collection. It ends when the client leaves, its timeout expires, the server stops,
// the kind is no longer served, or the client is too slow.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiateWatch(c, r)
	if err != nil {
		return err
	}
	options, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	life := s.watchLife(options)
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()

	begin := ctx
	if life < 0 { // as in Kubernetes the watch starts and ends at once
		begin = r.Context()
	}
	watching, err := s.verbs.Watch(begin, c, options)
	if err != nil {
		return err
	}
	st := &stream{
		s: s, watch: watching, form: media, bookmarks: options.AllowWatchBookmarks, figures: s.figures.of(c),
		began: s.verbs.Now(),
	}
	st.open(cancel)
	defer func() {
		if st.carrier.Load() == nil {
			st.close()
		}
	}()
	if request.IsWebSocket(r) {
		serveSocket(ctx, w, r, media, func(ctx context.Context, out sink) {
			if st.begin(ctx, out, life, options) {
				st.follow(ctx)
			}
		})
		return nil
	}
	w.Header().Set("Content-Type", media.WatchType())
	w.WriteHeader(http.StatusOK)
	out := &frames{out: w, control: http.NewResponseController(w)}
	defer out.giveUp(ctx)()
	if st.begin(ctx, out, life, options) {
		if until, _ := ctx.Deadline(); !st.carry(r.Context(), w, until) {
			st.follow(ctx)
		}
	}
	return nil
}

// watchLife returns the duration of a watch.
func (s *Server) watchLife(o *metainternal.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds != 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return s.watchAtLeast + rand.N(s.watchAtLeast)
}

// begin sends the initial state. It returns false if no events follow.
func (st *stream) begin(ctx context.Context, out sink, life time.Duration, o *metainternal.ListOptions) bool {
	st.out = out
	if err := st.watch.Err(); err != nil {
		// As in Kubernetes, errors after the parameters have been checked go into the stream.
		st.fail(err)
		return false
	}
	if life <= 0 || !st.initial(ctx, o) || !out.push() {
		return false
	}
	request.Release(ctx)
	st.watch.Follow()
	return true
}

// open begins the work beside the stream, until close. end ends the watch, as long as the handler serves it.
func (st *stream) open(end func()) {
	st.unshard = func() {}
	if st.watch.Sharded() {
		st.unshard = st.s.figures.sharded(st.call())
	}
	st.forget = st.whileServed(func() {
		st.unserved.Store(true)
		end()
		if k := st.carrier.Load(); k != nil {
			k.wake()
		}
	})
}

func (st *stream) close() {
	st.forget()
	st.unshard()
	st.watch.Close()
}
