package rest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// follow sends events until something ends the watch.
func (st *stream) follow(ctx context.Context) {
	tick := time.NewTicker(bookmarkEvery)
	defer tick.Stop()
	st.marked = st.watch.From()
	for {
		ending := ctx.Err() != nil
		more, ok := st.pass(ctx, ending)
		if !ok || ending {
			return
		}
		if more {
			continue
		}
		select {
		case <-st.watch.Changed():
		case <-st.watch.Granted():
		case <-tick.C:
			st.due = true
		case <-ctx.Done():
		}
	}
}

// pass sends the changes since the last pass, and a bookmark if one is due. ending is true for the last pass. more is
// true if further changes may be ready. ok is false if an error has ended the watch, or the client has disconnected.
func (st *stream) pass(ctx context.Context, ending bool) (more, ok bool) {
	changes, more, err := st.watch.Poll(ctx)
	if err != nil {
		if !errors.Is(err, ctx.Err()) {
			st.fail(err)
		}
		return false, false
	}
	defer clear(changes) // a waiting watcher must not retain entries
	for i := range changes {
		if st.out.full() {
			st.watch.Return(&changes[i])
			return false, true
		}
		if !st.event(&changes[i]) {
			return false, false
		}
	}
	delivered := st.watch.From()
	st.due = st.watch.Turned() || st.due
	// The final bookmark lets the client resume without replaying history.
	if st.bookmarks && (st.due || ending && delivered > st.marked) {
		if !st.bookmark(delivered, false) {
			return false, false
		}
		st.marked = delivered
	}
	st.due = false
	return more, st.out.push()
}

// whileServed ends the watch when its kind is no longer served in the form that the watch began with. It returns the
// function that stops looking.
func (st *stream) whileServed(end func()) (stop func()) {
	c := st.call()
	var mu sync.Mutex // guards forget, which the callback replaces
	var forget func() bool
	var look func(life context.Context)
	look = func(life context.Context) {
		mu.Lock()
		defer mu.Unlock()
		forget = context.AfterFunc(life, func() {
			res, ver := st.s.verbs.Catalog().Snapshot().Served(c.Resource.Group, c.Version.Name, c.Resource.Plural)
			if ver == nil || res.Definition.UID != c.Resource.Definition.UID ||
				res.Definition.Generation != c.Resource.Definition.Generation {
				end()
				return
			}
			look(res.Life()) // only the kind's status changed
		})
	}
	look(c.Resource.Life())
	return func() {
		mu.Lock()
		defer mu.Unlock()
		forget()
	}
}
