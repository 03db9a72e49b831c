package external

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hedgeAfter is how long a read may take before another member is asked too, and hedges how often that happens.
const (
	hedgeAfter = 500 * time.Millisecond
	hedges     = 3
)

// hedge repeats a request whenever hedgeAfter has passed without a response, and returns the first one. It is for
// reads, which may be repeated; the client's balancer sends each attempt to the next member. hedge calls slow when the
// first attempt is late. The error is that of the first attempt, unless ctx ends.
func hedge[T any](ctx context.Context, slow func(), ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
		first bool
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 1+hedges) // no attempt waits for a caller that has left
	attempt := func(first bool) {
		value, err := ask(ctx)
		answers <- answer{value, err, first}
	}
	go attempt(true)
	late := time.NewTimer(hedgeAfter)
	defer late.Stop()
	running, begun := 1, 0
	var failed error
	for {
		select {
		case a := <-answers:
			running--
			if a.err != nil && (failed == nil || a.first) {
				failed = a.err
			}
			if a.err == nil || running == 0 {
				return a.value, failedUnless(a.err == nil, failed)
			}
		case <-late.C:
			if begun == 0 {
				slow()
			}
			if begun++; begun <= hedges {
				running++
				go attempt(false)
				late.Reset(hedgeAfter)
			}
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

func failedUnless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

// members diverts requests from unresponsive members of the cluster, for example a paused one. Its connection stays
// open, so the client would send it its share of requests until keepalives fail.
type members struct {
	client *clientv3.Client
	all    []string
	log    *slog.Logger

	ctx  context.Context // the goroutine's; ends with close
	stop context.CancelFunc
	wg   sync.WaitGroup
	mu   struct {
		sync.Mutex
		checking bool
	}
}

const (
	// checkEvery is the interval of checks while a member does not respond.
	checkEvery = 2 * time.Second
	// checkWait limits a member's response time in a check.
	checkWait = time.Second
)

func newMembers(client *clientv3.Client, all []string, log *slog.Logger) *members {
	m := &members{client: client, all: slices.Clone(all), log: log}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// suspect starts checks of the members until all respond again. It does not block.
func (m *members) suspect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.checking || len(m.all) < 2 || m.ctx.Err() != nil {
		return
	}
	m.mu.checking = true
	m.wg.Go(m.check)
}

func (m *members) check() {
	used := m.all
	for {
		answer := m.answering()
		if len(answer) == 0 {
			answer = m.all // the members are not the cause
		}
		if m.ctx.Err() == nil && !slices.Equal(answer, used) {
			m.client.SetEndpoints(answer...)
			m.logResponding(answer)
			used = answer
		}
		m.mu.Lock()
		if m.ctx.Err() != nil || len(used) == len(m.all) {
			m.mu.checking = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		select {
		case <-m.ctx.Done():
		case <-time.After(checkEvery):
		}
	}
}

// answering returns the members that respond, in the order of all.
func (m *members) answering() []string {
	ctx, cancel := context.WithTimeout(m.ctx, checkWait)
	defer cancel()
	answers := make([]bool, len(m.all))
	var wg sync.WaitGroup
	for i, endpoint := range m.all {
		wg.Go(func() {
			_, err := m.client.Status(ctx, endpoint)
			answers[i] = err == nil
		})
	}
	wg.Wait()
	var found []string
	for i, endpoint := range m.all {
		if answers[i] {
			found = append(found, endpoint)
		}
	}
	return found
}

func (m *members) logResponding(used []string) {
	if len(used) == len(m.all) {
		m.log.Info("all members of etcd answer again", "members", m.all)
		return
	}
	silent := slices.DeleteFunc(slices.Clone(m.all), func(e string) bool { return slices.Contains(used, e) })
	m.log.Warn("members of etcd do not answer; requests go to the others until they do", "silent", silent, "used", used)
}

func (m *members) close() {
	m.mu.Lock()
	m.stop()
	m.mu.Unlock()
	m.wg.Wait()
}
