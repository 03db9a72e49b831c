package server

import (
	"context"
	"errors"
	"sync"
)

// life holds the goroutines of a server, and the functions that undo its start.
type life struct {
	broken chan error // the first failure while running; capacity 1, later ones are dropped
	undo   []func() error
}

func (l *life) onStop(f func() error) { l.undo = append(l.undo, f) }

// background runs f until the server stops. An error that f returns before that stops the server.
func (l *life) background(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			select {
			case l.broken <- err:
			default:
			}
		}
	})
	l.onStop(func() error {
		cancel()
		wg.Wait()
		return nil
	})
}

// stop undoes the start, the last step first. It ends the goroutines of background.
func (l *life) stop() error {
	var errs []error
	for i := len(l.undo) - 1; i >= 0; i-- {
		errs = append(errs, l.undo[i]())
	}
	return errors.Join(errs...)
}
