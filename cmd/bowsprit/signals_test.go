package main

import (
	"bufio"
	"context"
	"os"
	"strings"
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

// TestStopWithStdin checks that a server with --stop-with-stdin stops in order when its standard input ends.
func TestStopWithStdin(t *testing.T) {
	t.Parallel()
	cmd := command(t, "serve", "--ephemeral", "--secure-port=0", "--stop-with-stdin")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Stop with") {
			in.Close()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
