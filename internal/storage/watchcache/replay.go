package watchcache

import "context"

// Replay calls f with every object of the view as an Added event, as a subscriber gets them during Load: sorted by
// collection and key, in pieces. It runs in the view's goroutine, so between the last piece and the next change that
// subscribers hear of nothing is missed; meanwhile the view stands still. It is for a subscriber that begins late.
//
// It needs Run to be running. The error is ctx's.
func (v *View) Replay(ctx context.Context, f func([]*Event)) error {
	done := make(chan struct{})
	play := func() {
		defer close(done)
		events := make([]*Event, 0, pageSize)
		for _, c := range v.Collections() {
			c.tree.root.scan("", "", func(e *Entry) bool {
				if events = append(events,
					&Event{Type: Added, Revision: e.Revision, Entry: e, Collection: c}); len(events) == pageSize {
					f(events)
					events = events[:0]
				}
				return ctx.Err() == nil
			})
		}
		if len(events) > 0 {
			f(events)
		}
	}
	select {
	case v.plays <- play:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return ctx.Err()
}
