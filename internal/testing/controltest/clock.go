package controltest

import (
	"time"

	"github.com/bowsprit/bowsprit/testserver"
)

// Advancing moves a clock by a step again and again until stop is called: a step that comes before a controller has
// seen what the one before it has brought about is followed by another.
func Advancing(clock *testserver.Clock, step time.Duration) (stop func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ending:
				return
			case <-tick.C:
				clock.Advance(step)
			}
		}
	}()
	return func() {
		close(ending)
		<-ended
	}
}
