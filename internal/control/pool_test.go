package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// scripted is a reconciler with runs of one second and scripted errors for each key, one for each run.
type scripted struct {
	mu         sync.Mutex
	script     map[string][]error
	looks      []string // "key at seconds"
	now, most  int      // concurrent runs
	busy       map[string]bool
	began      time.Time
	again      func(key string) // called in each run
	overlapped bool
	pooled     bool
}

func (s *scripted) Observe(*watchcache.Event, func(string)) {}

func (s *scripted) Reconcile(_ context.Context, key string) (err error) {
	s.mu.Lock()
	s.overlapped = s.overlapped || s.busy[key]
	s.busy[key] = true
	s.now++
	s.most = max(s.most, s.now)
	s.looks = append(s.looks, fmt.Sprintf("%s at %g", key, time.Since(s.began).Seconds()))
	if results := s.script[key]; len(results) > 0 {
		err, s.script[key] = results[0], results[1:]
	}
	s.mu.Unlock()
	if s.again != nil {
		s.again(key)
	}
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	s.busy[key] = false
	return err
}

func (s *scripted) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.looks)
}

// atOnce returns how many keys are being looked at.
func (s *scripted) atOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func script() *scripted {
	return &scripted{script: map[string][]error{}, busy: map[string]bool{}, began: time.Now()}
}

// runPool runs loops of a pool until the test function returns, and waits for their end.
func runPool(t *testing.T, loops map[*scripted]int, do func(of map[*scripted]*member)) {
	t.Helper()
	p := newPool(slog.New(slog.DiscardHandler))
	members := map[*scripted]*member{}
	for s, workers := range loops {
		members[s] = p.join(&controller{name: "test", work: s, workers: workers, pooled: s.pooled})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
	do(members)
	cancel()
	<-ended
}

// TestPoolTakesTurns checks that a loop has as many concurrent keys as configured, whatever others have to do, and no
// key twice at once.
func TestPoolTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		narrow, wide, other := script(), script(), script()
		runPool(t, map[*scripted]int{narrow: 1, wide: 5, other: 5}, func(of map[*scripted]*member) {
			for i := range 20 {
				of[wide].Add(fmt.Sprint("w", i))
			}
			for i := range 4 {
				of[narrow].Add(fmt.Sprint("n", i))
			}
			of[other].Add("o")
			time.Sleep(20*time.Second + 1)
			synctest.Wait()
			if narrow.most != 1 || wide.most != 5 || len(narrow.looks) != 4 || len(wide.looks) != 20 {
				t.Errorf("%d at once of %v; %d of %v", narrow.most, narrow.looks, wide.most, wide.looks)
			}
			if got := other.seen(); got != "[o at 0]" {
				t.Errorf("the loop with one key had to wait: %s", got)
			}
		})
		if narrow.overlapped || wide.overlapped {
			t.Error("a key was worked on twice at once")
		}
	})
}

// TestPoolLooksAgain checks that a key requested during its run runs once more; after an error with growing pauses,
// after Again at its time.
func TestPoolLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		s.script["fails"] = []error{errors.New("x"), errors.New("x"), nil}
		s.script["waits"] = []error{fmt.Errorf("wrapped: %w", Again(10*time.Second)), nil}
		runPool(t, map[*scripted]int{s: 5}, func(of map[*scripted]*member) {
			once := sync.Once{}
			s.again = func(key string) {
				if key == "named" {
					once.Do(func() {
						of[s].Add(key)
						of[s].Add(key)
					})
				}
			}
			for _, key := range []string{"fails", "waits", "named"} {
				of[s].Add(key)
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			want := "[fails at 0 fails at 1.05 fails at 2.15 waits at 60 waits at 71 named at 120 named at 121]"
			if got := s.seen(); got != want {
				t.Errorf("looks %s, want %s", got, want)
			}
		})
	})
}

// TestPoolBoundsPooledLoops checks that pooled loops share the limit of the pool, and that others have their own.
func TestPoolBoundsPooledLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, wide := script(), script(), script()
		one.pooled, two.pooled = true, true
		runPool(t, map[*scripted]int{one: poolWorkers, two: poolWorkers, wide: 3 * poolWorkers},
			func(of map[*scripted]*member) {
				for i := range 3 * poolWorkers {
					for _, m := range of {
						m.Add(fmt.Sprint(i))
					}
				}
				time.Sleep(time.Second / 2)
				synctest.Wait()
				if a, b := one.atOnce(), two.atOnce(); a+b != poolWorkers || a == 0 || b == 0 {
					t.Errorf("pooled loops have %d and %d keys worked on, not %d", a, b, poolWorkers)
				}
				if n := wide.atOnce(); n != 3*poolWorkers {
					t.Errorf("the other loop has %d keys worked on, not %d", n, 3*poolWorkers)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				for s := range of {
					if len(s.looks) != 3*poolWorkers {
						t.Errorf("%d keys were looked at, not %d", len(s.looks), 3*poolWorkers)
					}
				}
			})
	})
}

// TestPoolRests checks that idle workers end, except for two, which handle the next keys.
func TestPoolRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		p := newPool(slog.New(slog.DiscardHandler))
		m := p.join(&controller{name: "test", work: s, workers: 50})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		before := bubbled()
		go func() {
			defer close(ended)
			p.run(ctx)
		}()
		for round := range 3 {
			for i := range 50 {
				m.Add(fmt.Sprint(round, " ", i))
			}
			time.Sleep(time.Second / 2)
			synctest.Wait()
			if n := s.atOnce(); n != 50 {
				t.Errorf("%d keys at once, not 50", n)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			// the pool itself has one goroutine, its context may have another
			if n := bubbled() - before; n > idleWorkers+2 {
				t.Errorf("a pool that rests has %d goroutines", n)
			}
		}
		cancel()
		<-ended
	})
}

// bubbled returns the number of goroutines in the caller's synctest bubble. runtime.NumGoroutine also counts those of
// other tests, which may start and end at any time.
func bubbled() int {
	stacks := make([]byte, 64<<10)
	for n := runtime.Stack(stacks, true); ; n = runtime.Stack(stacks, true) {
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	// the caller's is the first: "goroutine 35 [running, synctest bubble 34]:"
	state, _, _ := bytes.Cut(stacks, []byte("]:"))
	at := bytes.LastIndex(state, []byte("synctest bubble "))
	return bytes.Count(stacks, append(bytes.Clone(state[at:]), "]:"...))
}

// TestPoolKeepsOneTime checks that a key with several Again results has one scheduled time, the soonest.
func TestPoolKeepsOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		s.script["a"] = []error{Again(time.Hour), Again(2 * time.Hour), Again(time.Minute), Again(time.Hour), nil, nil}
		runPool(t, map[*scripted]int{s: 1}, func(of map[*scripted]*member) {
			for range 3 {
				of[s].Add("a")
				time.Sleep(2 * time.Second)
			}
			time.Sleep(5 * time.Hour)
			synctest.Wait()
			// at 4 s it requested a minute, which is sooner; at 65 s an hour, and then nothing
			if got, want := s.seen(), "[a at 0 a at 2 a at 4 a at 65 a at 3666]"; got != want {
				t.Errorf("looks %s, want %s", got, want)
			}
		})
	})
}

// TestPoolEnds checks that scheduled keys do not keep a pool from ending.
func TestPoolEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		s.script["a"] = []error{Again(time.Hour)}
		var m *member
		runPool(t, map[*scripted]int{s: 1}, func(of map[*scripted]*member) {
			m = of[s]
			m.Add("a")
			time.Sleep(2 * time.Second)
		})
		m.Add("b")
		time.Sleep(2 * time.Hour)
		if got := s.seen(); got != "[a at 0]" {
			t.Errorf("looks %s", got)
		}
	})
}

func TestRetryPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: retryFirst, 1: 2 * retryFirst, 9: 25600 * time.Millisecond,
		10: retryMost, 21: retryMost, 1 << 40: retryMost} {
		if got := retryPause(failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
}

// TestPoolSumsUpFailures checks the log of consecutive failures: the first, then ever fewer, and their end.
func TestPoolSumsUpFailures(t *testing.T) {
	var results bytes.Buffer
	p := newPool(slog.New(slog.NewTextHandler(&results, nil)))
	defer p.shutDown()
	m := p.join(&controller{name: "test"})
	for range 20 {
		p.done(m, "key", errors.New("broken"), false)
	}
	p.done(m, "key", nil, false)
	p.done(m, "key", nil, false)
	lines := strings.Split(strings.TrimSpace(results.String()), "\n")
	want := []string{"error=broken failures=1", "failures=8", "failures=16", "after failures\" controller=test"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %s", len(lines), len(want), results.String())
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("line %q lacks %q", lines[i], w)
		}
	}
}

// paced is scripted with a rest of three seconds.
type paced struct{ *scripted }

func (paced) Rest(string) time.Duration { return 3 * time.Second }

// TestPoolLetsKeysRest checks that a key of a Pacer rests after each run, whenever it is requested, and runs once
// afterwards; other keys do not wait for it.
func TestPoolLetsKeysRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		p := newPool(slog.New(slog.DiscardHandler))
		m := p.join(&controller{name: "test", work: paced{s}, workers: 1})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.run(ctx)
		}()
		m.Add("a")
		for _, key := range []string{"a", "b", "a", "a"} {
			time.Sleep(500 * time.Millisecond)
			m.Add(key)
		}
		time.Sleep(20 * time.Second)
		m.Add("a")
		time.Sleep(20 * time.Second)
		if got, want := s.seen(), "[a at 0 b at 1 a at 4 a at 22]"; got != want {
			t.Errorf("looks: %s, not %s", got, want)
		}
		cancel()
		<-ended
	})
}
