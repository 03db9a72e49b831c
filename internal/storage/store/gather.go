package store

import (
	"unsafe"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Gather collects a watch's events between two sends. Only one goroutine uses it.
type Gather struct {
	Prefix string // of the keys to collect
	batch  WatchBatch
	bytes  int
}

// gatherLimit bounds the bytes of values that a watch holds for a busy receiver.
const gatherLimit = 8 << 20

// Full reports whether the receiver must take the batch before more events are added.
func (g *Gather) Full() bool { return g.bytes >= gatherLimit }

// Empty reports whether there is nothing to send.
func (g *Gather) Empty() bool { return g.batch.Revision == 0 }

// Batch returns the collected events. After it is sent, Reset begins the next one.
func (g *Gather) Batch() WatchBatch { return g.batch }

// Reset begins the next batch.
func (g *Gather) Reset() { g.batch, g.bytes = WatchBatch{}, 0 }

// At records that all changes up to rev have been added.
func (g *Gather) At(rev int64) { g.batch.Revision = max(g.batch.Revision, rev) }

// Add adds an event. It keeps the event's key and value, and ignores keys outside of Prefix.
func (g *Gather) Add(e *mvccpb.Event) {
	g.At(e.Kv.ModRevision)
	if g.foreign(e.Kv.Key) {
		return
	}
	// etcd's index holds these bytes as long as the key exists; like values, they are never written to.
	key := unsafe.String(unsafe.SliceData(e.Kv.Key), len(e.Kv.Key))
	ev := Event{Key: key[len(g.Prefix):], Revision: e.Kv.ModRevision}
	if e.Type == mvccpb.Event_DELETE {
		ev.Deleted = true
	} else {
		ev.Value, ev.Created = e.Kv.Value, e.Kv.CreateRevision
	}
	g.bytes += len(ev.Value)
	g.batch.Events = append(g.batch.Events, ev)
}

func (g *Gather) foreign(k []byte) bool {
	return len(k) < len(g.Prefix) || string(k[:len(g.Prefix)]) != g.Prefix
}
