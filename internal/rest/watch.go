package rest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

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
	life := s.watchAtLeast + rand.N(s.watchAtLeast)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds != 0 {
		life = time.Duration(*options.TimeoutSeconds) * time.Second
	}
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
	defer watching.Close()
	if watching.Sharded() {
		defer s.figures.sharded(c)()
	}
	st := &stream{
		s: s, watch: watching, form: media, bookmarks: options.AllowWatchBookmarks, figures: s.figures.of(c),
		began: s.verbs.Now(),
	}
	run := func(ctx context.Context, out sink) {
		st.out = out
		if err := watching.Err(); err != nil {
			// As in Kubernetes, errors after the parameters have been checked go into the stream.
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
