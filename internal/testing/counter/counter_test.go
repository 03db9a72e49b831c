package counter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counter
		done := make(chan error)
		for range 3 {
			go func() { done <- c.WaitMore(t.Context(), 2) }()
		}
		synctest.Wait()
		c.Add()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("one event is enough for two: %v", err)
		default:
		}
		c.Add()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		stopped := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		go func() { done <- c.WaitMore(ctx, 1) }()
		synctest.Wait()
		stop(stopped)
		if err := <-done; !errors.Is(err, stopped) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}
