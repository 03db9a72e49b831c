package watchcache

import "context"

// Replay calls f with every object of the view as an Added event, as a subscriber receives them during Load: sorted by
// collection and key, in batches. It serves a subscriber that starts late. It runs in the view's goroutine, so no
// change is lost between the last batch and the next event for subscribers; meanwhile the view stands still.
//
// Run must be running. The error is ctx's.
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
