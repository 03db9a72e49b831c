package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// carried is a watch after its handler has returned: the connection carries it. It is also the sink of its stream,
// which never waits.
type carried struct {
	*stream
	w       http.ResponseWriter
	to      handover.Stream
	ctx     context.Context // of the request
	until   time.Time       // end of the watch
	mark    time.Time       // of the next bookmark; zero without bookmarks
	leaving bool            // the client has limited time to read the rest
	unhook  func() bool     // of ctx
	wake    func()          // of to
}

// carry hands the watch over to the connection, until the given time. It returns false if the handler must serve it. A
// watch that may wait for a webhook or for new permissions keeps its handler, because a connection has no goroutine for
// it.
func (st *stream) carry(ctx context.Context, w http.ResponseWriter, until time.Time) bool {
	if st.watch.Waits() {
		return false
	}
	k := &carried{stream: st, w: w, ctx: ctx, until: until}
	if k.to = handover.To(w, k); k.to == nil {
		return false
	}
	st.marked = st.watch.From()
	st.out = k
	if st.bookmarks {
		k.mark = time.Now().Add(bookmarkEvery)
	}
	k.wake = k.to.Wake
	k.unhook = context.AfterFunc(ctx, k.wake)
	st.carrier.Store(k)
	return true
}

// Turn implements handover.Rest.
func (k *carried) Turn(now time.Time) (next time.Time, complete bool) {
	ending := k.ctx.Err() != nil || k.unserved.Load() || !now.Before(k.until)
	if k.bookmarks && !now.Before(k.mark) {
		k.due = true
		k.mark = now.Add(bookmarkEvery)
	}
	more, ok := false, true
	if !k.to.Full() {
		more, ok = k.pass(k.ctx, ending)
	}
	full := k.to.Full()
	switch {
	case !ok, ending && !full:
		complete = true
	case full: // a turn follows
	case more || !k.watch.Sleep(k.wake):
		k.wake()
	}
	if full && (ending || complete) && !k.leaving {
		k.leaving = true
		_ = http.NewResponseController(k.w).SetWriteDeadline(now.Add(giveUpAfter)) // on error there is none to set
	}
	if ending {
		return time.Time{}, complete
	}
	if k.bookmarks && k.mark.Before(k.until) {
		return k.mark, complete
	}
	return k.until, complete
}

// Over implements handover.Rest.
func (k *carried) Over() {
	k.unhook()
	k.close()
}

func (k *carried) put(frame []byte) bool {
	_, err := k.w.Write(frame)
	return err == nil
}

func (k *carried) putParts(head, body, tail []byte) bool {
	frame := make([]byte, 0, len(head)+len(body)+len(tail))
	return k.put(append(append(append(frame, head...), body...), tail...))
}

// push does nothing: the connection sends the frames after the turns of all its streams.
func (k *carried) push() bool { return true }

func (k *carried) full() bool { return k.to.Full() }
