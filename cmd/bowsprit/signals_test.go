package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// The first signal stops the server in order. Further ones at the same time are the same wish; later ones are another.
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
