package memory

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// history is the versions of a key, in the order of revisions. A deletion is a version without a creation revision.
type history struct {
	key      string
	versions []*mvccpb.KeyValue // never changed once they are here
}

// at returns the key at a revision, nil if it does not exist then.
func (h *history) at(revision int64) *mvccpb.KeyValue {
	if h == nil {
		return nil
	}
	after := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].ModRevision > revision })
	if after == 0 || h.versions[after-1].CreateRevision == 0 {
		return nil
	}
	return h.versions[after-1]
}

// compact forgets the versions that are not needed to read at revision or later. It reports whether any is left.
func (h *history) compact(revision int64) bool {
	after := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].ModRevision > revision })
	if h.at(revision) != nil {
		after--
	}
	h.versions = slices.Clone(h.versions[after:])
	return len(h.versions) > 0
}

// putLocked adds a version. The caller increments e.revision and announces the change.
func (e *Etcd) putLocked(kv *mvccpb.KeyValue) {
	h := e.keys[string(kv.Key)]
	if h == nil {
		h = &history{key: string(kv.Key)}
		e.keys[h.key] = h
		at, _ := e.findLocked(h.key)
		e.order = slices.Insert(e.order, at, h)
	}
	h.versions = append(h.versions, kv)
	event := &mvccpb.Event{Kv: kv}
	if kv.CreateRevision == 0 {
		event.Type = mvccpb.Event_DELETE
	}
	e.log = append(e.log, logged{kv.ModRevision, event})
}

// findLocked returns the position of a key in order.
func (e *Etcd) findLocked(key string) (at int, found bool) {
	return slices.BinarySearchFunc(e.order, key, func(h *history, key string) int {
		return strings.Compare(h.key, key)
	})
}

// selectLocked returns the keys of a range at a revision, sorted. As in etcd's requests, no end means start alone, and
// the end "\x00" means all keys from start on.
func (e *Etcd) selectLocked(start, end []byte, revision int64) []*mvccpb.KeyValue {
	if len(end) == 0 {
		if kv := e.keys[string(start)].at(revision); kv != nil {
			return []*mvccpb.KeyValue{kv}
		}
		return nil
	}
	var found []*mvccpb.KeyValue
	endless := len(end) == 1 && end[0] == 0
	at, _ := e.findLocked(string(start))
	for _, h := range e.order[at:] {
		if !endless && h.key >= string(end) {
			break
		}
		if kv := h.at(revision); kv != nil {
			found = append(found, kv)
		}
	}
	return found
}

// readableLocked reports whether the history has a revision.
func (e *Etcd) readableLocked(revision int64) error {
	switch {
	case revision > e.revision:
		return store.ErrFuture
	case revision < e.compacted:
		return store.ErrCompacted
	}
	return nil
}

// copied returns a version for a receiver that may change it.
func copied(kv *mvccpb.KeyValue, value bool) *mvccpb.KeyValue {
	c := &mvccpb.KeyValue{
		Key: bytes.Clone(kv.Key), CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version,
		Lease: kv.Lease,
	}
	if value {
		c.Value = bytes.Clone(kv.Value)
	}
	return c
}

// rangeLocked answers a request as etcd does. revision is that of the keys if the request names none.
func (e *Etcd) rangeLocked(r *etcdserverpb.RangeRequest, revision int64) *etcdserverpb.RangeResponse {
	if r.Revision > 0 {
		revision = r.Revision
	}
	found := e.selectLocked(r.Key, r.RangeEnd, revision)
	resp := &etcdserverpb.RangeResponse{Count: int64(len(found))}
	if r.CountOnly {
		return resp
	}
	found = slices.DeleteFunc(found, func(kv *mvccpb.KeyValue) bool {
		return kv.ModRevision < r.MinModRevision || r.MaxModRevision > 0 && kv.ModRevision > r.MaxModRevision ||
			kv.CreateRevision < r.MinCreateRevision ||
			r.MaxCreateRevision > 0 && kv.CreateRevision > r.MaxCreateRevision
	})
	// Without an order etcd reads no more keys than it needs, and sorts these.
	if r.Limit > 0 && r.SortOrder == etcdserverpb.RangeRequest_NONE && !restricted(r) {
		found = found[:min(r.Limit+1, int64(len(found)))]
	}
	sortBy(found, r.SortTarget, r.SortOrder)
	if r.Limit > 0 && int64(len(found)) > r.Limit {
		found, resp.More = found[:r.Limit], true
	}
	for _, kv := range found {
		kv = copied(kv, !r.KeysOnly)
		if r.KeysOnly && r.SortTarget != etcdserverpb.RangeRequest_VALUE {
			kv.Lease = 0 // etcd answers from its index, which has no leases
		}
		resp.Kvs = append(resp.Kvs, kv)
	}
	return resp
}

// restricted reports whether a request restricts the revisions of keys.
func restricted(r *etcdserverpb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

// sortBy sorts keys, which are in the order of their names.
func sortBy(found []*mvccpb.KeyValue, target etcdserverpb.RangeRequest_SortTarget,
	order etcdserverpb.RangeRequest_SortOrder,
) {
	if order == etcdserverpb.RangeRequest_NONE && target == etcdserverpb.RangeRequest_KEY {
		return
	}
	slices.SortStableFunc(found, func(a, b *mvccpb.KeyValue) int {
		if order == etcdserverpb.RangeRequest_DESCEND {
			a, b = b, a
		}
		return compare(a, b, target)
	})
}

func compare(a, b *mvccpb.KeyValue, target etcdserverpb.RangeRequest_SortTarget) int {
	switch target {
	case etcdserverpb.RangeRequest_VERSION:
		return int(a.Version - b.Version)
	case etcdserverpb.RangeRequest_CREATE:
		return int(a.CreateRevision - b.CreateRevision)
	case etcdserverpb.RangeRequest_MOD:
		return int(a.ModRevision - b.ModRevision)
	case etcdserverpb.RangeRequest_VALUE:
		return bytes.Compare(a.Value, b.Value)
	}
	return bytes.Compare(a.Key, b.Key)
}
