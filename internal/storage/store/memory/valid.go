package memory

import (
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// maxOperations is etcd's default limit of comparisons, and of operations, in a transaction.
const maxOperations = 128

// refused is an error of etcd's client, as the other backends return it.
func refused(err error) error { return store.WriteError(err) }

// valid checks a transaction without its keys, as etcd does when a request arrives.
func valid(t *pb.TxnRequest) error {
	if max(len(t.Compare), len(t.Success), len(t.Failure)) > maxOperations {
		return refused(rpctypes.ErrTooManyOps)
	}
	for _, c := range t.Compare {
		if len(c.Key) == 0 {
			return refused(rpctypes.ErrEmptyKey)
		}
	}
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if err := validOperation(op); err != nil {
				return err
			}
		}
	}
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		if overlap(ops) {
			return refused(rpctypes.ErrDuplicateKey)
		}
	}
	return nil
}

func validOperation(op *pb.RequestOp) error {
	var key []byte
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		key = r.RequestRange.Key
	case *pb.RequestOp_RequestDeleteRange:
		key = r.RequestDeleteRange.Key
	case *pb.RequestOp_RequestPut:
		put := r.RequestPut
		switch key = put.Key; {
		case len(key) == 0:
		case put.IgnoreValue && len(put.Value) > 0:
			return refused(rpctypes.ErrValueProvided)
		case put.IgnoreLease && put.Lease != 0:
			return refused(rpctypes.ErrLeaseProvided)
		}
	default:
		return fmt.Errorf("etcd in memory: %w: %T in a transaction", errors.ErrUnsupported, op.Request)
	}
	if len(key) == 0 {
		return refused(rpctypes.ErrEmptyKey)
	}
	return nil
}

// overlap reports whether operations put a key twice, or put it and delete it.
func overlap(ops []*pb.RequestOp) bool {
	puts := map[string]bool{}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			if puts[string(put.Key)] {
				return true
			}
			puts[string(put.Key)] = true
		}
	}
	for _, op := range ops {
		if r := op.GetRequestDeleteRange(); r != nil {
			for key := range puts {
				if within(key, r) {
					return true
				}
			}
		}
	}
	return false
}

func within(key string, r *pb.DeleteRangeRequest) bool {
	switch end := string(r.RangeEnd); end {
	case "":
		return key == string(r.Key)
	case "\x00":
		return key >= string(r.Key)
	default:
		return key >= string(r.Key) && key < end
	}
}

// possibleLocked checks operations that are about to be made against the keys and leases.
func (e *Etcd) possibleLocked(ops []*pb.RequestOp) error {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			if rev := r.RequestRange.Revision; rev > 0 {
				switch err := e.readableLocked(rev); err {
				case store.ErrFuture:
					return refused(rpctypes.ErrFutureRev)
				case store.ErrCompacted:
					return refused(rpctypes.ErrCompacted)
				}
			}
		case *pb.RequestOp_RequestPut:
			put := r.RequestPut
			if put.Lease != 0 && e.leases[put.Lease] == nil {
				return store.ErrLeaseLost
			}
			if (put.IgnoreValue || put.IgnoreLease) && e.keys[string(put.Key)].at(e.revision) == nil {
				return refused(rpctypes.ErrKeyNotFound)
			}
		}
	}
	return nil
}
