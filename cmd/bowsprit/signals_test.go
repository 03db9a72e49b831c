package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSecondSignal checks that the first signal stops the server in order, that signals soon after it count as the same
// one, and that a later signal is a second one.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals, ended := make(chan os.Signal), make(chan bool, 1)
		go func() { ended <- secondSignal(ctx, cancel, signals) }()
		signals <- os.Interrupt
		signals <- os.Interrupt
		signals <- os.Interrupt
		synctest.Wait()
		if ctx.Err() == nil || len(ended) > 0 {
			t.Fatalf("after three signals at once: stopping %v, ended %v", ctx.Err(), len(ended) > 0)
		}
		time.Sleep(2 * time.Second)
		signals <- os.Interrupt
		if !<-ended {
			t.Error("a signal two seconds later does not end the process")
		}
	})
}
