package external

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// progressRetry is the interval for repeating an unanswered progress request: etcd drops it while a watch catches up.
const progressRetry = 100 * time.Millisecond

// Watch implements store.Backend: it follows the prefix. The client resumes by itself after a lost connection. Watch
// resumes when the client's channel ends, because the member has no leader (on one side of a partition) or has stopped.
func (r *remote) Watch(ctx context.Context, prefix string, from int64, out chan<- store.WatchBatch) error {
	nudge := make(chan struct{}, 1)
	r.mu.Lock()
	r.mu.nudges[nudge] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.mu.nudges, nudge)
		r.mu.Unlock()
	}()
	f := &follow{
		remote: r, nudge: nudge, out: out, next: from, gather: store.Gather{Prefix: prefix}, patience: stalledAfter,
	}
	for ctx.Err() == nil {
		if err := f.stream(ctx); errors.Is(err, store.ErrCompacted) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(progressRetry): // a cluster without a leader refuses at once; do not spin
		}
	}
	return nil
}

// follow is one running watch.
type follow struct {
	remote *remote
	nudge  chan struct{}
	out    chan<- store.WatchBatch
	next   int64 // the first revision not yet seen
	gather store.Gather

	streams  int           // number of streams so far
	patience time.Duration // allowed silence of the stream after a progress request
	silent   time.Time     // time of the first unanswered progress request; zero if there is none
}

// stalledAfter is how long a watch may leave progress requests unanswered before it restarts on another member, because
// its member may be paused. etcd also leaves them unanswered while a watch catches up, so each consecutive restart
// doubles the limit, up to stalledAtMost.
const (
	stalledAfter  = 2 * time.Second
	stalledAtMost = 30 * time.Second
)

var errStalled = errors.New("the watch is silent")

func (f *follow) stream(ctx context.Context) error {
	// The context's metadata selects the stream for RequestProgress, so both calls use the same metadata. It also
	// identifies this stream: a watch with the metadata of a silent stream would go to the same member.
	f.streams++
	f.silent = time.Time{}
	ctx = metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "bowsprit-stream", strconv.Itoa(f.streams))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	responses := f.remote.client.Watch(ctx, f.gather.Prefix, clientv3.WithPrefix(), clientv3.WithRev(f.next),
		clientv3.WithFragment(), clientv3.WithProgressNotify())
	retry := time.NewTimer(progressRetry)
	defer retry.Stop()
	for {
		in, send := responses, f.out
		if f.gather.Full() {
			in, f.silent = nil, time.Time{} // our own receiver is busy
		}
		if f.gather.Empty() {
			send = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case resp, ok := <-in:
			if !ok {
				return nil
			}
			f.silent, f.patience = time.Time{}, stalledAfter
			if err := resp.Err(); err != nil {
				if errors.Is(err, rpctypes.ErrCompacted) {
					return store.ErrCompacted
				}
				return err
			}
			for _, e := range resp.Events {
				f.gather.Add((*mvccpb.Event)(e))
			}
			if resp.IsProgressNotify() && resp.Header.Revision >= f.next {
				f.gather.At(resp.Header.Revision)
			}
			f.next = max(f.next, f.gather.Batch().Revision+1)
		case send <- f.gather.Batch():
			f.gather.Reset()
		case <-f.nudge:
			f.ask(ctx)
			retry.Reset(progressRetry)
		case <-retry.C:
			if f.stalled() {
				f.remote.members.suspect()
				return errStalled
			}
			f.ask(ctx)
			retry.Reset(progressRetry)
		}
	}
}

// stalled reports whether the stream has left progress requests unanswered for too long. It then raises the limit for
// the next stream.
func (f *follow) stalled() bool {
	if f.silent.IsZero() || time.Since(f.silent) < f.patience {
		return false
	}
	f.patience = min(2*f.patience, stalledAtMost)
	return true
}

// ask requests progress if a caller waits for a revision that has not arrived.
func (f *follow) ask(ctx context.Context) {
	if f.remote.wanted.Load() < f.next {
		f.silent = time.Time{}
		return
	}
	if f.silent.IsZero() {
		f.silent = time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, progressRetry)
	defer cancel()
	_ = f.remote.client.RequestProgress(ctx) // repeated until the response arrives
}

// RequestProgress implements store.Backend.
func (r *remote) RequestProgress(rev int64) {
	store.Raise(&r.wanted, rev)
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range r.mu.nudges {
		select {
		case n <- struct{}{}:
		default:
		}
	}
}
