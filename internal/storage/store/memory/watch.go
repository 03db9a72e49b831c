package memory

import (
	"context"
	"sort"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Watch implements store.Backend. Like the embedded etcd's, it follows all keys, so that every revision arrives.
func (b *backend) Watch(ctx context.Context, prefix string, from int64, out chan<- store.WatchBatch) error {
	g := store.Gather{Prefix: prefix}
	for {
		var changed <-chan struct{} // nil while the receiver is busy
		if !g.Full() {
			var err error
			if from, changed, err = b.gather(&g, from); err != nil {
				return err
			}
		}
		send := out
		if g.Empty() {
			send = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case send <- g.Batch():
			g.Reset()
		}
	}
}

// gather adds changes from revision from on, and returns the revision to continue at and a channel that is closed with
// the next change. It adds revisions as a whole.
func (e *Etcd) gather(g *store.Gather, from int64) (next int64, changed <-chan struct{}, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if from < e.compacted {
		return 0, nil, store.ErrCompacted
	}
	for _, l := range e.log[e.sinceLocked(from):] {
		if l.revision >= from && g.Full() {
			break
		}
		g.Add(&mvccpb.Event{Type: l.event.Type, Kv: copied(l.event.Kv, true)})
		from = l.revision + 1
	}
	return from, e.changed, nil
}

// sinceLocked returns the position in the log of the first change at or after a revision.
func (e *Etcd) sinceLocked(revision int64) int {
	return sort.Search(len(e.log), func(i int) bool { return e.log[i].revision >= revision })
}

// RequestProgress implements store.Backend: a watch receives every revision anyway.
func (b *backend) RequestProgress(int64) {}
