package bowsprit

import (
	"log/slog"
	"time"
)

// stopLogged stops the server, and says so.
func (p *process) stopLogged() error {
	began := time.Now()
	p.log.Info("stopping", "runningRequestsMayTake", p.config.ShutdownTimeout)
	err := p.stop()
	p.log.Info("stopped", "after", time.Since(began))
	return err
}

// slowStep is after how long a step of the start says what it is doing, and how often it says so again.
const slowStep, slowStepAgain = 2 * time.Second, 30 * time.Second

// noteSlow says what the start is doing if that takes long; the function that it returns ends that.
func noteSlow(log *slog.Logger, doing string, attrs ...any) (done func()) {
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
