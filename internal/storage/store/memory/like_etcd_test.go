package memory_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
)

// pair is an etcd and its twin in memory. Every operation goes to both, and their results must be equal.
type pair struct {
	*testing.T
	etcd, twin store.Backend
	client     *clientv3.Client // of etcd, for operations that no store uses
	memory     *memory.Etcd
	leases     [][2]int64 // the IDs of both

	program []byte // decides about each operation
	done    int    // operations so far
}

func newPair(t *testing.T, program []byte) *pair {
	t.Helper()
	env := store.Environment{Prefix: "/", Log: slog.New(slog.DiscardHandler)}
	config := embedded.Config{
		Dir: filepath.Join(t.TempDir(), "etcd"), NoSync: true, ListenClientURL: "http://127.0.0.1:0",
	}
	etcd, err := config.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.ClientURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	p := &pair{T: t, etcd: etcd, memory: memory.New(), client: client, program: program}
	if p.twin, err = p.memory.Open(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.twin.Close() })
	return p
}

// pick returns a number below n.
func (p *pair) pick(n int) int {
	if len(p.program) == 0 {
		return 0
	}
	b := p.program[0]
	p.program = p.program[1:]
	return int(b) % n
}

// same compares a result of both.
func (p *pair) same(desc string, etcd, twin any) {
	p.Helper()
	if e, m := fmt.Sprintf("%+v", etcd), fmt.Sprintf("%+v", twin); e != m {
		p.Fatalf("operation %d, %s:\netcd:   %s\nmemory: %s", p.done, desc, e, m)
	}
}

func (p *pair) key() []byte { return []byte([]string{"a", "a/1", "a/2", "b", "b/1", "c"}[p.pick(6)]) }

// end returns the end of a range, nil for a single key.
func (p *pair) end() []byte {
	return [][]byte{nil, nil, []byte("b"), []byte("b/1"), []byte("a/2"), {0}}[p.pick(6)]
}

// revision returns an old, the present or a future one; 0 most often.
func (p *pair) revision() int64 {
	if p.pick(3) > 0 {
		return 0
	}
	now, err := p.etcd.Revision(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return max(1, now+2-int64(p.pick(40)))
}

// lease returns the position of a lease, -1 for none.
func (p *pair) lease() int {
	if len(p.leases) == 0 || p.pick(3) > 0 {
		return -1
	}
	return p.pick(len(p.leases))
}

func (p *pair) compare() *pb.Compare {
	c := &pb.Compare{Key: p.key(), Result: pb.Compare_CompareResult(p.pick(4))}
	if p.pick(5) == 0 {
		c.RangeEnd = p.end()
	}
	switch p.pick(4) {
	case 0:
		c.Target, c.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: int64(p.pick(3))}
	case 1:
		c.Target, c.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: p.revision()}
	case 2:
		c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: p.revision()}
	case 3:
		c.Target, c.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: []byte{byte('0' + p.pick(3))}}
	}
	return c
}

// operation returns an operation for both: they differ in the IDs of leases.
func (p *pair) operation() [2]*pb.RequestOp {
	key := p.key()
	if p.pick(60) == 1 {
		key = nil // refused
	}
	switch p.pick(4) {
	case 0:
		r := &pb.RangeRequest{
			Key: key, RangeEnd: p.end(), Limit: int64(p.pick(3)), KeysOnly: p.pick(4) == 0, CountOnly: p.pick(6) == 0,
			SortOrder: pb.RangeRequest_SortOrder(p.pick(3)), SortTarget: pb.RangeRequest_SortTarget(p.pick(5)),
		}
		if p.pick(4) == 0 {
			r.Revision = p.revision()
		}
		if p.pick(6) == 0 {
			r.MinModRevision, r.MaxCreateRevision = p.revision(), p.revision()
		}
		op := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
		return [2]*pb.RequestOp{op, op}
	case 1:
		end := p.end()
		if string(end) <= string(key) { // etcd does not find puts that overlap a reversed or an endless deletion
			end = nil
		}
		op := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: key, RangeEnd: end, PrevKv: p.pick(2) == 0},
		}}
		return [2]*pb.RequestOp{op, op}
	}
	var both [2]*pb.RequestOp
	lease, value, prev := p.lease(), []byte{byte('0' + p.pick(3))}, p.pick(3) == 0
	keepValue, keepLease := p.pick(12) == 1, p.pick(12) == 1
	if keepValue && p.pick(4) > 0 {
		value = nil
	}
	for i := range both {
		put := &pb.PutRequest{Key: key, Value: value, PrevKv: prev, IgnoreValue: keepValue, IgnoreLease: keepLease}
		if lease >= 0 {
			put.Lease = p.leases[lease][i]
		}
		both[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	}
	return both
}

func (p *pair) commit() {
	var both [2]*pb.TxnRequest
	both[0], both[1] = &pb.TxnRequest{}, &pb.TxnRequest{}
	for range p.pick(3) {
		c := p.compare()
		both[0].Compare, both[1].Compare = append(both[0].Compare, c), append(both[1].Compare, c)
	}
	for range 1 + p.pick(3) {
		op := p.operation()
		both[0].Success, both[1].Success = append(both[0].Success, op[0]), append(both[1].Success, op[1])
	}
	for range p.pick(3) {
		op := p.operation()
		both[0].Failure, both[1].Failure = append(both[0].Failure, op[0]), append(both[1].Failure, op[1])
	}
	text := prototext.Format(both[1])
	e, eErr := p.etcd.Commit(p.Context(), both[0])
	m, mErr := p.twin.Commit(p.Context(), both[1])
	p.same("error of "+text, eErr, mErr)
	if eErr == nil {
		p.same("result of "+text, p.outcome(e, 0), p.outcome(m, 1))
	}
}

// outcome is the text of a response, with the positions of leases.
func (p *pair) outcome(r *pb.TxnResponse, of int) string {
	text := fmt.Sprintln(r.Succeeded, r.Header.Revision)
	for _, one := range r.Responses {
		got := one.GetResponseRange()
		text += fmt.Sprintln("range", p.keys(got.GetKvs(), of), got.GetCount(), got.GetMore())
		if put := one.GetResponsePut(); put != nil {
			text += fmt.Sprintln("put", p.keys([]*mvccpb.KeyValue{put.PrevKv}, of))
		}
		if gone := one.GetResponseDeleteRange(); gone != nil {
			text += fmt.Sprintln("delete", gone.Deleted, p.keys(gone.PrevKvs, of))
		}
	}
	return text
}

func (p *pair) keys(all []*mvccpb.KeyValue, of int) (text string) {
	for _, kv := range all {
		lease := -1
		for i, ids := range p.leases {
			if kv.GetLease() == ids[of] {
				lease = i
			}
		}
		text += fmt.Sprintf("%s=%q created %d modified %d version %d lease %d; ", kv.GetKey(), kv.GetValue(),
			kv.GetCreateRevision(), kv.GetModRevision(), kv.GetVersion(), lease)
	}
	return text
}

func (p *pair) read() {
	span := store.Span{Start: p.key(), End: p.end(), Limit: int64(p.pick(3)), Revision: p.revision()}
	if string(span.End) == "\x00" {
		span.End = []byte("zzz") // the store never asks for all keys
	}
	e, eErr := p.etcd.Range(p.Context(), span)
	m, mErr := p.twin.Range(p.Context(), span)
	p.same(fmt.Sprintf("error of %+v", span), eErr, mErr)
	p.same(fmt.Sprintf("result of %+v", span), fmt.Sprint(p.keys(e.Keys, 0), e.More, e.Revision),
		fmt.Sprint(p.keys(m.Keys, 1), m.More, m.Revision))
}

// watch compares the events from a revision up to a last write.
func (p *pair) watch() {
	from := max(1, p.revision())
	last := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte("a/last")},
	}}}}
	prefix := []string{"", "a", "b/"}[p.pick(3)]
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	var texts [2]string
	for i, b := range []store.Backend{p.etcd, p.twin} {
		resp, err := b.Commit(ctx, last)
		if err != nil {
			p.Fatal(err)
		}
		out, ended := make(chan store.WatchBatch), make(chan error, 1)
		stop, end := context.WithCancel(ctx)
		go func() { ended <- b.Watch(stop, prefix, from, out) }()
		for seen, open := int64(0), true; open && seen < resp.Header.Revision && from <= resp.Header.Revision; {
			select {
			case batch := <-out:
				seen = batch.Revision
				texts[i] += fmt.Sprintf("%+v", batch.Events)
			case err := <-ended:
				texts[i], open = fmt.Sprint(err), false
				ended <- nil
			}
		}
		end()
		if err := <-ended; err != nil {
			p.Fatal(err)
		}
	}
	texts[0], texts[1] = joined(texts[0]), joined(texts[1])
	p.same(fmt.Sprintf("watch of %q from %d", prefix, from), texts[0], texts[1])
}

func (p *pair) step() {
	p.done++
	ctx := p.Context()
	switch n := p.pick(24); n {
	case 0:
		rev := p.revision()
		p.same(fmt.Sprint("compaction to ", rev), p.etcd.Compact(ctx, max(1, rev)), p.twin.Compact(ctx, max(1, rev)))
	case 1:
		if len(p.leases) > 8 {
			return
		}
		e, eErr := p.etcd.Grant(ctx, 1000)
		m, mErr := p.twin.Grant(ctx, 1000)
		p.same("grant", eErr, mErr)
		p.leases = append(p.leases, [2]int64{e, m})
	case 2:
		if i := p.lease(); i >= 0 {
			_, eErr := p.client.Revoke(ctx, clientv3.LeaseID(p.leases[i][0]))
			p.same("revoke", store.ReadError(eErr), p.memory.Revoke(p.leases[i][1]))
		}
	case 3:
		if i := p.lease(); i >= 0 {
			e, eErr := p.client.KeepAliveOnce(ctx, clientv3.LeaseID(p.leases[i][0]))
			m, mErr := p.memory.KeepAlive(p.leases[i][1])
			p.same("keep alive", store.ReadError(eErr), mErr)
			if eErr == nil {
				p.same("kept alive", time.Duration(e.TTL)*time.Second, m)
			}
		}
	case 4, 5:
		p.watch()
	case 6, 7, 8, 9:
		p.read()
	default:
		p.commit()
	}
	e, eErr := p.etcd.Revision(ctx)
	m, mErr := p.twin.Revision(ctx)
	p.same("revision", fmt.Sprint(e, eErr), fmt.Sprint(m, mErr))
}

func joined(text string) string {
	out := ""
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '[' && c != ']' && c != ' ' {
			out += string(c)
		}
	}
	return out
}

// TestLikeEtcd compares the memory with etcd by random operations.
func TestLikeEtcd(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			program := make([]byte, 12<<10)
			for i := range program {
				program[i] = byte(random.Uint32())
			}
			for p := newPair(t, program); len(p.program) > 0; {
				p.step()
			}
		})
	}
}

// FuzzLikeEtcd is TestLikeEtcd for programs that fuzzing finds.
func FuzzLikeEtcd(f *testing.F) {
	f.Add([]byte("put, delete, watch and compact"))
	f.Fuzz(func(t *testing.T, program []byte) {
		for p := newPair(t, program[:min(len(program), 4<<10)]); len(p.program) > 0; {
			p.step()
		}
	})
}
