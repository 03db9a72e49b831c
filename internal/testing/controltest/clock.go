package controltest

import (
	"time"

	"github.com/bowsprit/bowsprit/testserver"
)

// Advancing moves a clock by a step repeatedly until stop is called: one step may come before a controller has seen the
// effects of the previous one.
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
