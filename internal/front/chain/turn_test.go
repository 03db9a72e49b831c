package chain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns has three responses share one turn: they are written one after the other, and a response to a client that
// does not read loses its turn after turnTime. The clock is synctest's.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := &turns{taken: make(chan struct{}, 1)}
		stuck, next := &turn{of: of}, &turn{of: of}
		if !stuck.take(t.Context()) {
			t.Fatal("no turn although it is free")
		}
		began := time.Now()
		if !next.take(t.Context()) || time.Since(began) != turnTime {
			t.Errorf("the next had its turn after %s, want %s", time.Since(began), turnTime)
		}
		stuck.end() // the turn has timed out
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if other := (&turn{of: of}); other.take(gone) {
			t.Error("one whose client has gone has a turn beside another")
		}
		next.end()
		if !stuck.take(t.Context()) {
			t.Error("no second turn")
		}
		stuck.end()
		time.Sleep(2 * turnTime) // of the bubble's clock: its timer is not late
		if len(of.taken) != 0 {
			t.Error("a turn was not given back")
		}
	})
}

// TestOffer checks that large pieces yield the CPU to other threads while there are short requests, once every
// yieldEvery.
func TestOffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		offers, spares := 0, 0
		of := &turns{taken: make(chan struct{}, 1), yield: func() { offers++ }, spare: func() { spares++ },
			began: time.Now()}
		answer := &turn{of: of}
		// pieces writes n pieces, each in a quarter of yieldEvery, and returns the number of yields.
		pieces := func(n int, meanwhile func()) int {
			offers, spares = 0, 0
			for range n {
				if !answer.take(t.Context()) {
					t.Fatal("no turn although it is free")
				}
				time.Sleep(yieldEvery / 4)
				meanwhile()
				answer.end()
			}
			if spares != offers {
				t.Errorf("a spare processor was asked for %d times, with %d offers", spares, offers)
			}
			return offers
		}
		nothing := func() {}
		if got := pieces(100, nothing); got != 0 {
			t.Errorf("%d offers to no one", got)
		}
		of.ended()
		if got := pieces(100, nothing); got != 0 {
			t.Errorf("%d offers for a request that met no large piece", got)
		}
		if got := pieces(100, of.ended); got != 25 {
			t.Errorf("%d offers in 25 times yieldEvery", got)
		}
		time.Sleep(yieldFor)
		if got := pieces(100, nothing); got != 0 {
			t.Errorf("%d offers long after the last short request", got)
		}
	})
}
