package server

import "time"

// stopLogged stops the server and logs the stop.
func (p *process) stopLogged() error {
	began := time.Now()
	p.log.Info("stopping", "runningRequestsMayTake", p.config.ShutdownTimeout)
	err := p.stop()
	p.log.Info("stopped", "after", time.Since(began))
	return err
}
