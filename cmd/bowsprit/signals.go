package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// impatience is the time after the first signal in which further signals count as the same one. A terminal, a shell and
// a service manager may each send one.
const impatience = time.Second

// stopOnSignal returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. A signal that comes more than
// impatience later ends the process at once.
func stopOnSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		if secondSignal(ctx, cancel, signals) {
			os.Exit(130)
		}
	}()
	return ctx, func() { cancel(); signal.Stop(signals); close(signals) }
}

// secondSignal calls cancel at the first signal and returns true at the next signal that counts. It returns false when
// signals is closed.
func secondSignal(ctx context.Context, cancel func(), signals <-chan os.Signal) bool {
	select {
	case <-signals:
		cancel()
	case <-ctx.Done():
	}
	first := time.Now()
	for range signals {
		if time.Since(first) >= impatience {
			return true
		}
	}
	return false
}
