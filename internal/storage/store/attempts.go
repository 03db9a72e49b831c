package store

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempts are those of one guarded transaction.
type attempts struct {
	guards *guards
	own    *guard
	mark   string
	t      transaction
	looks  int // of the transaction, before the one at the guard

	answers chan answer
	sent    int
	open    int // without an answer
	unsure  int // failed without telling whether they took place
}

type answer struct {
	outcome
	err error
}

// run sends attempts until the outcome is known. It returns the guard unless its state is not known.
func (a *attempts) run(ctx context.Context) (outcome, error) {
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
				return outcome{}, failed
			}
		case <-next.C:
			if a.sent == 1 {
				a.guards.suspect()
			}
			if a.sent < maxAttempts {
				a.send(ctx)
				next.Reset(hedgeAfter << max(0, a.sent-8))
			}
		case <-ctx.Done():
			return outcome{}, errors.Join(ctx.Err(), failed)
		}
	}
}

func (a *attempts) send(ctx context.Context) {
	a.sent++
	a.open++
	go func() {
		out, err := once(ctx, a.guards.client, a.t)
		a.answers <- answer{out, err}
	}()
}

// look judges one answer. It is not done if the attempt may still take place, or another one has to be sent; err is the
// reason then.
func (a *attempts) look(ctx context.Context, got answer) (done bool, out outcome, err error) {
	if got.err != nil {
		switch written := writeError(got.err); {
		case errors.Is(written, ErrUncertain):
			a.unsure++
			return false, outcome{}, got.err
		case errors.Is(written, ErrNoSpace): // etcd may have applied it all the same: see Writer.happened
			if a.open > 0 || a.unsure > 0 {
				return true, outcome{}, errors.New(got.err.Error()) // uncertain
			}
			return true, outcome{}, got.err
		default:
			a.guards.lost(got.err)
			out, err := a.refused(ctx, outcome{}, got.err)
			return true, out, err
		}
	}
	if got.succeeded {
		return true, a.tookPlace(got.revision, got.seen), nil
	}
	kvs := got.looks[a.looks].GetResponseRange().GetKvs()
	got.looks = got.looks[:a.looks]
	switch {
	case len(kvs) > 0 && string(kvs[0].Value) == a.mark:
		return true, a.tookPlace(kvs[0].ModRevision, got.seen), nil
	case len(kvs) == 0 || kvs[0].ModRevision != a.own.rev:
		a.guards.lost(errGuardLost)
		return true, outcome{}, errGuardLost
	}
	out, err = a.refused(ctx, got.outcome, nil)
	return true, out, err
}

// tookPlace is the outcome of an attempt that did, at a revision.
func (a *attempts) tookPlace(rev, seen int64) outcome {
	a.own.rev = rev
	a.guards.put(a.own)
	return outcome{succeeded: true, revision: rev, seen: seen}
}

// refused makes a refusal final: no other attempt takes place after it.
func (a *attempts) refused(ctx context.Context, out outcome, refusal error) (outcome, error) {
	if a.open == 0 && a.unsure == 0 {
		a.guards.put(a.own)
		return out, refusal
	}
	end := "-" + a.mark
	resp, err := hedge(ctx, a.guards.suspect, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return a.guards.client.Txn(ctx).If(a.own.unchanged()).
			Then(clientv3.OpPut(a.own.key, end, clientv3.WithIgnoreLease())).
			Else(clientv3.OpGet(a.own.key)).Commit()
	})
	if err != nil {
		return outcome{}, err // the guard is not used again
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
		return outcome{}, errGuardLost
	case string(kvs[0].Value) == a.mark:
		return a.tookPlace(kvs[0].ModRevision, resp.Header.Revision), nil
	}
	a.own.rev = kvs[0].ModRevision // an earlier attempt of the put above
	a.guards.put(a.own)
	return out, refusal
}
