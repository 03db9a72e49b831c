package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// TestHedge checks that a read without a response goes to the next member, and that a failed read does not.
func TestHedge(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	silent := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	answer := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	refuse := func(context.Context) (int, error) { return 0, refused }
	for name, test := range map[string]struct {
		members   []func(context.Context) (int, error) // in the order in which they are asked
		want      int
		wantError error
		wantSlow  bool
		wantAfter time.Duration
	}{
		"an answer": {members: []func(context.Context) (int, error){answer(1)}, want: 1},
		"an error":  {members: []func(context.Context) (int, error){refuse}, wantError: refused},
		"one is silent": {
			members: []func(context.Context) (int, error){silent, answer(2)}, want: 2, wantSlow: true,
			wantAfter: hedgeAfter,
		},
		"two are silent": {
			members: []func(context.Context) (int, error){silent, silent, answer(3)}, want: 3, wantSlow: true,
			wantAfter: 2 * hedgeAfter,
		},
		"the other one refuses": {
			members: []func(context.Context) (int, error){silent, refuse, answer(3)}, want: 3, wantSlow: true,
			wantAfter: 2 * hedgeAfter,
		},
		"all are silent for long": {
			members:   []func(context.Context) (int, error){silent, silent, silent, silent},
			wantError: context.DeadlineExceeded, wantSlow: true, wantAfter: time.Minute,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var mu sync.Mutex
			requests, slow, began := 0, false, time.Now()
			got, err := hedge(ctx, func() { slow = true }, func(ctx context.Context) (int, error) {
				mu.Lock()
				ask := test.members[requests]
				requests++
				mu.Unlock()
				return ask(ctx)
			})
			if got != test.want || !errors.Is(err, test.wantError) || slow != test.wantSlow ||
				time.Since(began) != test.wantAfter {
				t.Errorf("%s: %d, %v, slow %v, after %s", name, got, err, slow, time.Since(began))
			}
		})
	}
}

// pausable is a member that can be paused: connections stay open, and nothing passes.
type pausable struct {
	net.Listener
	to string

	mu       sync.Mutex
	moved    sync.Cond
	paused   bool
	conns    []net.Conn
	answered int // number of responses with firstValue
}

// firstValue is the value that reads request: a connection that delivers it carries requests.
var firstValue = []byte(`{"value":"of k/first"}`)

func newPausable(t *testing.T, to string) *pausable {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pausable{Listener: l, to: u.Host}
	p.moved.L = &p.mu
	var wg sync.WaitGroup
	wg.Go(func() { p.serve(&wg) })
	t.Cleanup(func() {
		l.Close()
		p.pause(false)
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

func (p *pausable) url() string { return "http://" + p.Addr().String() }

func (p *pausable) pause(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	p.moved.Broadcast()
}

func (p *pausable) serve(wg *sync.WaitGroup) {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		wg.Go(func() { p.copy(in, out) })
		wg.Go(func() { p.copy(out, in) })
	}
}

func (p *pausable) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.paused {
			p.moved.Wait()
		}
		p.answered += bytes.Count(buffer[:n], firstValue)
		p.mu.Unlock()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// answers returns how often firstValue was read from the member.
func (p *pausable) answers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// TestPausedMember pauses one of three members: reads succeed, the watch continues, and writes go to the others once
// the pause is detected. When the member is back, it is used again.
func TestPausedMember(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Open(t, etcdtest.Config(t))
	var members []*pausable
	var urls []string
	for range 3 {
		m := newPausable(t, etcd.ClientURL())
		members, urls = append(members, m), append(urls, m.url())
	}
	ctx := etcdtest.Context(t)
	k := &keep{Config: Config{Endpoints: urls}}
	s, err := store.Open(ctx, store.Config{Etcd: k, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Create(ctx, "k/first", firstValue)
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(ctx, first)
	for i, member := range members {
		for before := member.answers(); member.answers() == before; { // until the client has a connection to it
			if _, err := s.Get(ctx, "k/first"); err != nil {
				t.Fatalf("before member %d is paused, read: %v", i, err)
			}
		}
		member.pause(true)
		// Slow reads detect the pause. On a busy machine the client may give up the connection first: then no read is
		// slow.
		for quick := 0; len(k.opened.client.Endpoints()) == len(urls) && quick < 1000; quick++ {
			began := time.Now()
			if _, err := s.Get(ctx, "k/first"); err != nil {
				t.Fatalf("member %d is paused, read: %v", i, err)
			}
			if time.Since(began) >= hedgeAfter {
				quick = 0
			}
		}
		for n := range 6 {
			if _, err := s.Create(ctx, fmt.Sprintf("k/%d-%d", i, n), []byte("{}")); err != nil {
				t.Errorf("member %d is paused, write %d: %v", i, n, err)
			}
		}
		last := s.Written()
		s.RequestProgress(last) // as the view does for a fresh read
		for seen := int64(0); seen < last; {
			select {
			case batch := <-watch:
				seen = batch.Revision
			case <-ctx.Done():
				t.Fatalf("member %d is paused: the watch is at revision %d of %d", i, seen, last)
			}
		}
		member.pause(false)
		for len(k.opened.client.Endpoints()) != len(urls) {
			if ctx.Err() != nil {
				t.Fatal("the member that is back is not used")
			}
			time.Sleep(time.Millisecond)
		}
	}
}
