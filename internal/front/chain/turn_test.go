package chain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns has three answers take one turn: they are written one after the other, and one whose client does not take
// it loses its turn after turnTime. The clock is synctest's.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := make(turns, 1)
		stuck, next := &turn{of: of}, &turn{of: of}
		if !stuck.take(t.Context()) {
			t.Fatal("no turn although it is free")
		}
		began := time.Now()
		if !next.take(t.Context()) || time.Since(began) != turnTime {
			t.Errorf("the next had its turn after %s, want %s", time.Since(began), turnTime)
		}
		stuck.end() // it no longer has one
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
		if len(of) != 0 {
			t.Error("a turn was not given back")
		}
	})
}
