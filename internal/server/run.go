package server

import "context"

// running is the result of the last phase: a server that answers requests.
type running struct{ *loaded }

// run is the last phase: it starts the controllers, and then the front.
func (l *loaded) run() *running {
	l.background(func(ctx context.Context) error { l.control.Run(ctx); return nil })
	l.background(l.trim)
	l.background(func(context.Context) error { return l.front.Serve(l.listener) })
	l.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), l.config.ShutdownTimeout)
		defer cancel()
		return l.front.Shutdown(ctx)
	})
	return &running{l}
}

// wait returns nil when ctx ends, or the error of the part that broke.
func (r *running) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.host.Store.Failed():
		return nil // closing it returns the reason
	case err := <-r.broken:
		select {
		case <-r.host.Store.Failed():
			return nil // the part broke because the store did
		default:
			return err
		}
	}
}
