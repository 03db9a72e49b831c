package external

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// attempts are the attempts of one guarded transaction.
type attempts struct {
	guards *guards
	own    *guard
	mark   string
	t      *pb.TxnRequest
	looks  int // of the transaction, before the one at the guard

	answers chan answer
	sent    int
	open    int // without an answer
	unsure  int // failed without telling whether they took place
}

type answer struct {
	*pb.TxnResponse
	err error
}

// run sends attempts until the outcome is known. It returns the guard unless its state is not known.
func (a *attempts) run(ctx context.Context) (*pb.TxnResponse, error) {
	a.answers = make(chan answer, maxAttempts) // no attempt waits for a caller that has gone
	next := time.NewTimer(hedgeAfter)
	defer next.Stop()
	a.send(ctx)
	var failed error
	for {
		select {
		case got := <-a.answers:
			a.open--
			done, out, err := a.look(ctx, got)
			if done {
				return out, err
			}
			if failed = err; a.sent < maxAttempts {
				next.Reset(attemptPause << min(a.sent-1, 5))
			} else if a.open == 0 {
				return nil, failed
			}
		case <-next.C:
			if a.sent == 1 {
				a.guards.etcd.suspect()
			}
			if a.sent < maxAttempts {
				a.send(ctx)
				next.Reset(hedgeAfter << max(0, a.sent-8))
			}
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), failed)
		}
	}
}

func (a *attempts) send(ctx context.Context) {
	a.sent++
	a.open++
	go func() {
		out, err := a.guards.etcd.once(ctx, a.t)
		a.answers <- answer{out, err}
	}()
}

// look judges one answer. It is not done if the attempt may still take place, or another one has to be sent; err is the
// reason then.
func (a *attempts) look(ctx context.Context, got answer) (done bool, out *pb.TxnResponse, err error) {
	if got.err != nil {
		switch written := store.WriteError(got.err); {
		case errors.Is(written, store.ErrUncertain):
			a.unsure++
			return false, nil, got.err
		case errors.Is(written, store.ErrNoSpace): // etcd may have applied it all the same: see Writer.happened
			if a.open > 0 || a.unsure > 0 {
				return true, nil, errors.New(got.err.Error()) // uncertain
			}
			return true, nil, got.err
		default:
			a.guards.lost(got.err)
			out, err := a.refused(ctx, nil, got.err)
			return true, out, err
		}
	}
	if got.Succeeded {
		return true, a.tookPlace(got.Header.Revision), nil
	}
	kvs := got.Responses[a.looks].GetResponseRange().GetKvs()
	got.Responses = got.Responses[:a.looks]
	switch {
	case len(kvs) > 0 && string(kvs[0].Value) == a.mark:
		return true, a.tookPlace(kvs[0].ModRevision), nil
	case len(kvs) == 0 || kvs[0].ModRevision != a.own.rev:
		a.guards.lost(errGuardLost)
		return true, nil, errGuardLost
	}
	out, err = a.refused(ctx, got.TxnResponse, nil)
	return true, out, err
}

// tookPlace is the response to an attempt that did, at a revision.
func (a *attempts) tookPlace(rev int64) *pb.TxnResponse {
	a.own.rev = rev
	a.guards.put(a.own)
	return &pb.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: rev}}
}

// refused makes a refusal final: no other attempt takes place after it.
func (a *attempts) refused(ctx context.Context, out *pb.TxnResponse, refusal error) (*pb.TxnResponse, error) {
	if a.open == 0 && a.unsure == 0 {
		a.guards.put(a.own)
		return out, refusal
	}
	end := "-" + a.mark
	resp, err := a.guards.etcd.hedged(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{a.own.unchanged()},
		Success: []*pb.RequestOp{put(&pb.PutRequest{Key: []byte(a.own.key), Value: []byte(end), IgnoreLease: true})},
		Failure: []*pb.RequestOp{a.own.look()},
	})
	if err != nil {
		return nil, err // the guard is not used again
	}
	if resp.Succeeded {
		a.own.rev = resp.Header.Revision
		a.guards.put(a.own)
		return out, refusal
	}
	kvs := resp.Responses[0].GetResponseRange().GetKvs()
	switch {
	case len(kvs) == 0:
		a.guards.lost(errGuardLost)
		return nil, errGuardLost
	case string(kvs[0].Value) == a.mark:
		return a.tookPlace(kvs[0].ModRevision), nil
	}
	a.own.rev = kvs[0].ModRevision // an earlier attempt of the put above
	a.guards.put(a.own)
	return out, refusal
}
