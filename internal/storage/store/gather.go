package store

import (
	"unsafe"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// gather collects events between two sends.
type gather struct {
	prefix string
	batch  WatchBatch
	bytes  int
}

// gatherLimit bounds the bytes of values that a watch holds for a busy receiver.
const gatherLimit = 8 << 20

func (g *gather) full() bool   { return g.bytes >= gatherLimit }
func (g *gather) empty() bool  { return g.batch.Revision == 0 }
func (g *gather) reset()       { g.batch, g.bytes = WatchBatch{}, 0 }
func (g *gather) at(rev int64) { g.batch.Revision = max(g.batch.Revision, rev) }
func (g *gather) foreign(k []byte) bool {
	return len(k) < len(g.prefix) || string(k[:len(g.prefix)]) != g.prefix
}

func (g *gather) add(e *mvccpb.Event) {
	g.at(e.Kv.ModRevision)
	if g.foreign(e.Kv.Key) {
		return
	}
	// etcd's index holds these bytes as long as the key exists; like values, they are never written to.
	key := unsafe.String(unsafe.SliceData(e.Kv.Key), len(e.Kv.Key))
	ev := Event{Key: key[len(g.prefix):], Revision: e.Kv.ModRevision}
	if e.Type == mvccpb.Event_DELETE {
		ev.Deleted = true
	} else {
		ev.Value, ev.Created = e.Kv.Value, e.Kv.CreateRevision
	}
	g.bytes += len(ev.Value)
	g.batch.Events = append(g.batch.Events, ev)
}
