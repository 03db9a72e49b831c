//go:build moving

package store

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// faulty is an etcd in memory that loses and delays requests and answers.
type faulty struct {
	clientv3.KV
	clientv3.Lease

	mu      sync.Mutex
	random  *rand.Rand
	calm    bool
	rev     int64
	keys    map[string]*mvccpb.KeyValue
	applied map[string][]int64 // the revisions at which each value was put, or each key deleted
	late    sync.WaitGroup
	lates   int // requests that were applied after their caller had gone
}

func (f *faulty) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: 1}, nil
}

func (f *faulty) Txn(ctx context.Context) clientv3.Txn { return &faultyTxn{etcd: f, ctx: ctx} }

type faultyTxn struct {
	etcd       *faulty
	ctx        context.Context
	conditions []clientv3.Cmp
	then, els  []clientv3.Op
}

func (t *faultyTxn) If(c ...clientv3.Cmp) clientv3.Txn  { t.conditions = c; return t }
func (t *faultyTxn) Then(o ...clientv3.Op) clientv3.Txn { t.then = o; return t }
func (t *faultyTxn) Else(o ...clientv3.Op) clientv3.Txn { t.els = o; return t }

// Commit applies the transaction now, later or never, and answers, fails or is silent.
func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	f := t.etcd
	f.mu.Lock()
	fate, delay := f.random.IntN(12), time.Duration(f.random.IntN(20_000))*time.Millisecond
	if f.calm {
		fate = 11
	}
	switch fate {
	case 0: // it takes place, and nobody says so
		f.applyLocked(t)
		f.mu.Unlock()
		<-t.ctx.Done()
		return nil, t.ctx.Err()
	case 1, 2, 3: // a paused member: it takes place when its caller may have gone
		done := make(chan *clientv3.TxnResponse, 1)
		f.late.Go(func() { // under the lock, so that none begins after the test has set calm and waits
			time.Sleep(delay)
			f.mu.Lock()
			defer f.mu.Unlock()
			if t.ctx.Err() != nil {
				f.lates++
			}
			done <- f.applyLocked(t)
		})
		f.mu.Unlock()
		select {
		case resp := <-done:
			return resp, nil
		case <-t.ctx.Done():
			return nil, t.ctx.Err()
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

func (f *faulty) applyLocked(t *faultyTxn) *clientv3.TxnResponse {
	resp := &clientv3.TxnResponse{Succeeded: true}
	for _, condition := range t.conditions {
		c := condition.GetCompare()
		kv := f.keys[string(c.Key)]
		if kv == nil {
			kv = &mvccpb.KeyValue{}
		}
		switch want := c.TargetUnion.(type) {
		case *etcdserverpb.Compare_ModRevision:
			resp.Succeeded = resp.Succeeded && kv.ModRevision == want.ModRevision
		case *etcdserverpb.Compare_CreateRevision:
			resp.Succeeded = resp.Succeeded && kv.CreateRevision == want.CreateRevision
		default:
			panic("unknown condition")
		}
	}
	ops := t.els
	if resp.Succeeded {
		ops = t.then
	}
	changed := false
	for _, op := range ops {
		changed = changed || op.IsPut() || op.IsDelete() && f.keys[string(op.KeyBytes())] != nil
	}
	if changed {
		f.rev++
	}
	for _, op := range ops {
		key, one := string(op.KeyBytes()), &etcdserverpb.ResponseOp{}
		switch {
		case op.IsPut():
			created := f.rev
			if old := f.keys[key]; old != nil {
				created = old.CreateRevision
			}
			value := string(op.ValueBytes())
			f.keys[key] = &mvccpb.KeyValue{
				Key: []byte(key), Value: []byte(value), ModRevision: f.rev, CreateRevision: created,
			}
			f.applied[value] = append(f.applied[value], f.rev)
		case op.IsDelete():
			delete(f.keys, key)
		case op.IsGet():
			found := &etcdserverpb.RangeResponse{}
			if kv := f.keys[key]; kv != nil {
				found.Kvs = []*mvccpb.KeyValue{kv}
			}
			one.Response = &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: found}
		}
		resp.Responses = append(resp.Responses, one)
	}
	resp.Header = &etcdserverpb.ResponseHeader{Revision: f.rev}
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
			client := &clientv3.Client{KV: f, Lease: f}
			g := newGuards(client, func() {}, slog.New(slog.DiscardHandler))
			type write struct {
				value string
				out   outcome
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
						w := transaction{
							conditions: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", rev)},
							// The deletion of a key has a mark, too, so that it can be counted.
							effects: []clientv3.Op{clientv3.OpPut(key, value)},
							looks:   []clientv3.Op{clientv3.OpGet(key)},
						}
						if rev > 0 && random.IntN(2) == 0 {
							w.effects = []clientv3.Op{clientv3.OpDelete(key), clientv3.OpPut("deleted", value)}
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(20))*time.Second)
						out, err := g.transact(ctx, w)
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
				case w.out.succeeded:
					acknowledged++
					if len(at) != 1 || at[0] != w.out.revision {
						t.Errorf("seed %d: %s is acknowledged at %d and took place at %v", seed, w.value, w.out.revision, at)
					}
				default:
					refusals++
					if len(at) != 0 || len(w.out.looks) != 1 {
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
