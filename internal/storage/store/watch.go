package store

import "context"

// Event is a change of one key.
type Event struct {
	Key      string // relative to the prefix
	Value    []byte // nil if Deleted; owned by the receiver
	Revision int64
	Created  int64 // revision of the key's creation; 0 if Deleted
	Deleted  bool
}

// WatchBatch is a piece of the stream: all changes of the prefix after the batch before, up to Revision. A revision is
// never split over two batches. Events is empty when only the revision has advanced.
type WatchBatch struct {
	Events   []Event
	Revision int64
	Err      error // ErrCompacted or the store's failure, in the last batch
}

// Watch delivers every change of the prefix from revision from (> 0) on, in order, until ctx ends, an error is
// delivered or the store is closed; then it closes the channel. It resumes lost connections without a gap.
//
// The channel is unbuffered: while the receiver is busy, changes are gathered into one batch (up to a few MB; etcd
// keeps the rest), so a slow receiver gets larger batches and delays no other.
func (s *Store) Watch(ctx context.Context, from int64) <-chan WatchBatch {
	out := make(chan WatchBatch)
	started := s.start(func() {
		defer close(out)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1) // the watch sends once and must not block
		go func() { ended <- s.backend.Watch(inner, s.prefix, from, out) }()
		var err error
		select {
		case err = <-ended:
		case <-s.done:
			cancel()
			<-ended
		case <-s.backend.Failed():
			cancel()
			<-ended
			err = s.backend.Failure()
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		select {
		case out <- WatchBatch{Err: err}:
		case <-ctx.Done():
		case <-s.done: // the receiver itself may be waiting in Close
		}
	})
	if !started {
		close(out)
	}
	return out
}

// RequestProgress makes running watches report when they have passed rev, even without changes under the prefix. It
// does not block. A caller that waits for a revision needs it, because other users of an external etcd advance the
// revision too.
func (s *Store) RequestProgress(rev int64) { s.backend.RequestProgress(rev) }
