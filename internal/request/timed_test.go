package request

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimedIsAContextWithADeadline runs the same random steps on a Timed and on a context of package context. Both must
// agree at all times, with and without an earlier call of Done.
func TestTimedIsAContextWithADeadline(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			parent, endParent := context.WithCancelCause(context.WithValue(t.Context(), scopeKey{}, &Scope{}))
			defer endParent(nil)
			at := time.Now().Add(5 * time.Second)
			want, end := context.WithDeadline(parent, at)
			defer end()
			var got Timed
			scope := new(Scope)
			got.Begin(parent, scope, at)
			defer got.End()
			if d, ok := got.Deadline(); !ok || !d.Equal(at) || ScopeOf(&got) != scope {
				t.Fatalf("deadline %v, %v; scope %p of %p", d, ok, ScopeOf(&got), scope)
			}
			var children [2][]context.Context
			for range 12 {
				switch random.IntN(6) {
				case 0:
					time.Sleep(time.Duration(random.IntN(4)) * time.Second) // of the bubble's clock
				case 1:
					for i, ctx := range []context.Context{&got, want} {
						child, cancel := context.WithCancel(ctx)
						defer cancel()
						children[i] = append(children[i], child)
					}
				case 2:
					if random.IntN(4) == 0 {
						endParent(nil)
					}
				case 3:
					if random.IntN(4) == 0 {
						got.End()
						end()
					}
				case 4:
					if over(&got) != over(want) {
						t.Fatalf("seed %d: over: %v, want %v", seed, over(&got), over(want))
					}
				}
				synctest.Wait()
				if !errors.Is(got.Err(), want.Err()) || context.Cause(&got) != context.Cause(want) {
					t.Fatalf("seed %d: %v because of %v, want %v because of %v", seed, got.Err(), context.Cause(&got),
						want.Err(), context.Cause(want))
				}
				for i, child := range children[0] {
					if !errors.Is(child.Err(), children[1][i].Err()) {
						t.Fatalf("seed %d: a child: %v, want %v", seed, child.Err(), children[1][i].Err())
					}
				}
			}
		})
	}
}

// over reports whether a context has ended, by its channel.
func over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// TestTimedMakesNothingThatIsNotWaitedFor checks that a Timed without a call of Done allocates nothing.
func TestTimedMakesNothingThatIsNotWaitedFor(t *testing.T) {
	parent, scope, at := t.Context(), new(Scope), time.Now().Add(time.Minute)
	var c Timed
	if n := testing.AllocsPerRun(100, func() {
		c = Timed{}
		c.Begin(parent, scope, at)
		if c.Err() != nil || ScopeOf(&c) != scope {
			t.Error("it has ended before it began")
		}
		c.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
