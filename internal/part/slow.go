package part

import (
	"log/slog"
	"time"
)

// slowStep is the time after which a step of the start logs its name, and slowStepAgain the interval in which it
// repeats that.
const slowStep, slowStepAgain = 2 * time.Second, 30 * time.Second

// NoteSlow logs the current step of the start if the step takes long. The returned function ends that.
func NoteSlow(log *slog.Logger, doing string, attrs ...any) (done func()) {
	began := time.Now()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTimer(slowStep)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				args := append([]any{"step", doing, "after", time.Since(began).Round(time.Second).String()}, attrs...)
				log.Warn("the start takes long", args...)
				tick.Reset(slowStepAgain)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
