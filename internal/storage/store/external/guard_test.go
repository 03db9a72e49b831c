package external

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// faulty is an etcd in memory that loses and delays requests and answers.
type faulty struct {
	mu      sync.Mutex
	random  *rand.Rand
	calm    bool
	rev     int64
	keys    map[string]*mvccpb.KeyValue
	applied map[string][]int64 // the revisions at which each value was put, or each key deleted
	late    sync.WaitGroup
	lates   int // requests that were applied after their caller had gone
}

func (f *faulty) grant(context.Context, int64) (int64, error) { return 1, nil }
func (f *faulty) revoke(context.Context, int64) error         { return nil }
func (f *faulty) suspect()                                    {}

func (f *faulty) hedged(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	return hedge(ctx, f.suspect, func(ctx context.Context) (*pb.TxnResponse, error) { return f.once(ctx, t) })
}

// once applies the transaction now, later or never, and answers, fails or is silent.
func (f *faulty) once(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	f.mu.Lock()
	fate, delay := f.random.IntN(12), time.Duration(f.random.IntN(20_000))*time.Millisecond
	if f.calm {
		fate = 11
	}
	switch fate {
	case 0: // it takes place, and nobody says so
		f.applyLocked(t)
		f.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	case 1, 2, 3: // a paused member: it takes place when its caller may have gone
		done := make(chan *pb.TxnResponse, 1)
		f.late.Go(func() { // under the lock, so that none begins after the test has set calm and waits
			time.Sleep(delay)
			f.mu.Lock()
			defer f.mu.Unlock()
			if ctx.Err() != nil {
				f.lates++
			}
			done <- f.applyLocked(t)
		})
		f.mu.Unlock()
		select {
		case resp := <-done:
			return resp, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case 4: // the connection breaks before
		f.mu.Unlock()
		return nil, rpctypes.ErrLeaderChanged
	case 5: // and after
		f.applyLocked(t)
		f.mu.Unlock()
		return nil, rpctypes.ErrTimeoutDueToLeaderFail
	}
	defer f.mu.Unlock()
	return f.applyLocked(t), nil
}

func (f *faulty) applyLocked(t *pb.TxnRequest) *pb.TxnResponse {
	resp := &pb.TxnResponse{Succeeded: true}
	for _, c := range t.Compare {
		kv := f.keys[string(c.Key)]
		if kv == nil {
			kv = &mvccpb.KeyValue{}
		}
		switch want := c.TargetUnion.(type) {
		case *pb.Compare_ModRevision:
			resp.Succeeded = resp.Succeeded && kv.ModRevision == want.ModRevision
		case *pb.Compare_CreateRevision:
			resp.Succeeded = resp.Succeeded && kv.CreateRevision == want.CreateRevision
		default:
			panic("unknown condition")
		}
	}
	ops := t.Failure
	if resp.Succeeded {
		ops = t.Success
	}
	changed := false
	for _, op := range ops {
		changed = changed || op.GetRequestPut() != nil || f.keys[string(op.GetRequestDeleteRange().GetKey())] != nil
	}
	if changed {
		f.rev++
	}
	for _, op := range ops {
		one := &pb.ResponseOp{}
		switch op := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			key := string(op.RequestPut.Key)
			created := f.rev
			if old := f.keys[key]; old != nil {
				created = old.CreateRevision
			}
			value := string(op.RequestPut.Value)
			f.keys[key] = &mvccpb.KeyValue{
				Key: []byte(key), Value: []byte(value), ModRevision: f.rev, CreateRevision: created,
			}
			f.applied[value] = append(f.applied[value], f.rev)
		case *pb.RequestOp_RequestDeleteRange:
			delete(f.keys, string(op.RequestDeleteRange.Key))
		case *pb.RequestOp_RequestRange:
			found := &pb.RangeResponse{}
			if kv := f.keys[string(op.RequestRange.Key)]; kv != nil {
				found.Kvs = []*mvccpb.KeyValue{kv}
			}
			one.Response = &pb.ResponseOp_ResponseRange{ResponseRange: found}
		}
		resp.Responses = append(resp.Responses, one)
	}
	resp.Header = &pb.ResponseHeader{Revision: f.rev}
	return resp
}

// TestGuardedWrites has writers of few keys create, update and delete through members that lose and delay. A write that
// is acknowledged took place once, at the revision of the answer; a refused one never does, however late its attempts
// come; one without an answer took place at most once.
func TestGuardedWrites(t *testing.T) {
	acknowledged, refusals, unknown, lates := 0, 0, 0, 0
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{
				random: rand.New(rand.NewPCG(seed, 6)), keys: map[string]*mvccpb.KeyValue{},
				applied: map[string][]int64{}, rev: 1,
			}
			g := newGuards(f, slog.New(slog.DiscardHandler))
			type write struct {
				value string
				out   *pb.TxnResponse
				err   error
			}
			var mu sync.Mutex
			var all []write
			var writers sync.WaitGroup
			for writer := range 4 {
				random := rand.New(rand.NewPCG(seed, uint64(100+writer)))
				writers.Go(func() {
					for n := range 12 {
						key := fmt.Sprint("k", random.IntN(2))
						f.mu.Lock()
						var rev int64
						if kv := f.keys[key]; kv != nil {
							rev = kv.ModRevision
						}
						f.mu.Unlock()
						if random.IntN(8) == 0 {
							rev = 0
						}
						value := fmt.Sprint("w", writer, ".", n)
						w := &pb.TxnRequest{
							Compare: []*pb.Compare{(&guard{key: key, rev: rev}).unchanged()},
							Success: []*pb.RequestOp{put(&pb.PutRequest{Key: []byte(key), Value: []byte(value)})},
							Failure: []*pb.RequestOp{(&guard{key: key}).look()},
						}
						// The deletion of a key has a mark, too, so that it can be counted.
						if rev > 0 && random.IntN(2) == 0 {
							w.Success = []*pb.RequestOp{
								{Request: &pb.RequestOp_RequestDeleteRange{
									RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)},
								}},
								put(&pb.PutRequest{Key: []byte("deleted"), Value: []byte(value)}),
							}
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(20))*time.Second)
						out, err := g.commit(ctx, w)
						cancel()
						mu.Lock()
						all = append(all, write{value, out, err})
						mu.Unlock()
					}
				})
			}
			writers.Wait()
			f.mu.Lock()
			f.calm = true
			f.mu.Unlock()
			f.late.Wait()
			lates += f.lates
			for _, w := range all {
				at := f.applied[w.value]
				switch {
				case w.err != nil:
					unknown++
					if len(at) > 1 {
						t.Errorf("seed %d: %s without an answer took place at %v", seed, w.value, at)
					}
				case w.out.Succeeded:
					acknowledged++
					if len(at) != 1 || at[0] != w.out.Header.Revision {
						t.Errorf("seed %d: %s is acknowledged at %d and took place at %v", seed, w.value,
							w.out.Header.Revision, at)
					}
				default:
					refusals++
					if len(at) != 0 || len(w.out.Responses) != 1 {
						t.Errorf("seed %d: %s is refused and took place at %v", seed, w.value, at)
					}
				}
			}
		})
	}
	t.Logf("%d acknowledged, %d refused, %d unknown, %d attempts took effect or not after their caller had gone",
		acknowledged, refusals, unknown, lates)
	if acknowledged < 1000 || refusals < 500 || lates < 500 || unknown > acknowledged/5 {
		t.Errorf("%d acknowledged, %d refused, %d unknown, %d late: the test is not about what it should be",
			acknowledged, refusals, unknown, lates)
	}
}
