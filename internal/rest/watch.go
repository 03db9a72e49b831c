package rest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// bookmarkEvery is how often a watcher that allows bookmarks learns how far the log has gone.
const bookmarkEvery = time.Minute

// serveWatch streams changes of a collection until the client leaves, its timeout is over, the server stops, the kind
// is no longer served, or the client has been too slow to follow.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiateWatch(c, r)
	if err != nil {
		return err
	}
	options, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	life := s.watchAtLeast + rand.N(s.watchAtLeast)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds != 0 {
		life = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()

	begin := ctx
	if life < 0 { // as in Kubernetes it is answered, and over when it has begun
		begin = r.Context()
	}
	watching, err := s.verbs.Watch(begin, c, options)
	if err != nil {
		return err
	}
	defer watching.Close()
	if watching.Sharded() {
		defer s.figures.sharded(c)()
	}
	st := &stream{
		s: s, c: c, watch: watching, form: media, bookmarks: options.AllowWatchBookmarks, figures: s.figures.of(c),
		began: s.verbs.Now(),
	}
	run := func(ctx context.Context, out sink) {
		st.out = out
		if err := watching.Err(); err != nil {
			// After the parameters have been understood, what goes wrong is told inside the stream, as kube does it.
			st.fail(err)
			return
		}
		if life > 0 && st.initial(ctx, options) && out.push() {
			request.Release(ctx)
			st.follow(ctx)
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
