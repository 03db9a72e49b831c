package memory

import (
	"bytes"
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// maxRequestBytes is etcd's default.
const maxRequestBytes = 1.5 * 1024 * 1024

// Range implements store.Backend.
func (e *Etcd) Range(ctx context.Context, of store.Span) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	r := &pb.RangeRequest{Key: of.Start, RangeEnd: of.End, Limit: of.Limit, Revision: of.Revision}
	if of.Revision > 0 {
		if err := e.readableLocked(of.Revision); err != nil {
			return store.Found{}, err
		}
	}
	resp := e.rangeLocked(r, e.revision)
	return store.Found{Keys: resp.Kvs, More: resp.More, Revision: e.revision}, nil
}

// Commit implements store.Backend.
func (e *Etcd) Commit(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := valid(t); err != nil {
		return nil, err
	}
	if proto.Size(t) > cmp.Or(e.MaxRequestBytes, maxRequestBytes) {
		return nil, store.ErrTooLarge
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	resp, ops := &pb.TxnResponse{Succeeded: e.holdLocked(t.Compare)}, t.Failure
	if resp.Succeeded {
		ops = t.Success
	}
	if err := e.possibleLocked(ops); err != nil {
		return nil, err
	}
	x := &transaction{Etcd: e}
	for _, op := range ops {
		resp.Responses = append(resp.Responses, x.doLocked(op))
	}
	x.endLocked()
	resp.Header = &pb.ResponseHeader{Revision: e.revision}
	return resp, nil
}

// transaction makes changes at the next revision.
type transaction struct {
	*Etcd
	changes int
}

// next is the revision of the transaction's changes.
func (x *transaction) next() int64 { return x.revision + 1 }

func (x *transaction) doLocked(op *pb.RequestOp) *pb.ResponseOp {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{
			ResponseRange: x.rangeLocked(r.RequestRange, x.next()), // with the changes so far
		}}
	case *pb.RequestOp_RequestPut:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: x.putLocked(r.RequestPut)}}
	case *pb.RequestOp_RequestDeleteRange:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{
			ResponseDeleteRange: x.deleteLocked(r.RequestDeleteRange),
		}}
	}
	return nil // valid has refused it
}

func (x *transaction) putLocked(r *pb.PutRequest) *pb.PutResponse {
	old := x.keys[string(r.Key)].at(x.next())
	kv := &mvccpb.KeyValue{
		Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Lease: r.Lease, Version: 1,
		CreateRevision: x.next(), ModRevision: x.next(),
	}
	resp := &pb.PutResponse{}
	if old != nil {
		kv.Version, kv.CreateRevision = old.Version+1, old.CreateRevision
		if r.IgnoreValue {
			kv.Value = old.Value
		}
		if r.IgnoreLease {
			kv.Lease = old.Lease
		}
		if r.PrevKv {
			resp.PrevKv = copied(old, true)
		}
	}
	x.leaseLocked(old, kv)
	x.Etcd.putLocked(kv)
	x.changes++
	return resp
}

func (x *transaction) deleteLocked(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	found := x.selectLocked(r.Key, r.RangeEnd, x.next())
	resp := &pb.DeleteRangeResponse{Deleted: int64(len(found))}
	for _, old := range found {
		kv := &mvccpb.KeyValue{Key: old.Key, ModRevision: x.next()}
		x.leaseLocked(old, kv)
		x.Etcd.putLocked(kv)
		x.changes++
		if r.PrevKv {
			resp.PrevKvs = append(resp.PrevKvs, copied(old, true))
		}
	}
	return resp
}

// endLocked makes the changes visible.
func (x *transaction) endLocked() {
	if x.changes == 0 {
		return
	}
	x.revision++
	close(x.changed)
	x.changed = make(chan struct{})
}

// holdLocked reports whether all comparisons hold.
func (e *Etcd) holdLocked(all []*pb.Compare) bool {
	for _, c := range all {
		found := e.selectLocked(c.Key, c.RangeEnd, e.revision)
		if len(found) == 0 {
			if c.Target == pb.Compare_VALUE { // no value is not even an empty one
				return false
			}
			found = []*mvccpb.KeyValue{{}}
		}
		for _, kv := range found {
			if !holds(c, kv) {
				return false
			}
		}
	}
	return true
}

func holds(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var is int
	switch c.Target {
	case pb.Compare_VALUE:
		is = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		is = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		is = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		is = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		is = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_NOT_EQUAL:
		return is != 0
	case pb.Compare_GREATER:
		return is > 0
	case pb.Compare_LESS:
		return is < 0
	}
	return is == 0
}

// Compact implements store.Backend.
func (e *Etcd) Compact(_ context.Context, rev int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case rev <= e.compacted:
		return store.ErrCompacted
	case rev > e.revision:
		return store.ErrFuture
	}
	e.compacted = rev
	kept := e.order[:0:0]
	for _, h := range e.order {
		if h.compact(rev) {
			kept = append(kept, h)
		} else {
			delete(e.keys, h.key)
		}
	}
	e.order = kept
	e.log = append([]logged(nil), e.log[e.sinceLocked(rev):]...)
	return nil
}
