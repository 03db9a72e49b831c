// Package fault keeps the reason why an etcd, or a connection to one, has failed for good, and receives etcd's log.
//
// It stands below the backends of package store: package embedded sets a fault when etcd gives up, package external
// when a newer version uses the same data. Methods of Fault are safe for concurrent use.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Fault is the reason of a failure, set once or never.
type Fault struct {
	once sync.Once
	c    chan struct{} // closed once why is set
	why  error

	stopping atomic.Bool
}

// New returns a fault without a reason.
func New() *Fault { return &Fault{c: make(chan struct{})} }

// Set sets the reason as text.
func (f *Fault) Set(why string) { f.Fail(errors.New(why)) }

// Fail sets the reason. Only the first one counts.
func (f *Fault) Fail(why error) {
	f.once.Do(func() {
		f.why = why
		close(f.c)
	})
}

// Recovered sets the panic of a goroutine as the reason; p is nil if there was none.
func (f *Fault) Recovered(p any) {
	switch p := p.(type) {
	case nil:
	case runtime.Error: // its text does not mention files
		f.Set("etcd cannot make sense of its files")
	default:
		f.Set(fmt.Sprint(p))
	}
}

// Done is closed when there is a reason.
func (f *Fault) Done() <-chan struct{} { return f.c }

// Err returns the reason, nil if there is none.
func (f *Fault) Err() error {
	select {
	case <-f.c:
		return f.why
	default:
		return nil
	}
}

// Stop records that etcd is about to be stopped: Logger then expects errors.
func (f *Fault) Stop() { f.stopping.Store(true) }
