package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// fault is why etcd gave up, if it did.
type fault struct {
	once sync.Once
	c    chan struct{} // closed once why is set
	why  error
	// stopping is set when we stop etcd: it then logs expected errors.
	stopping atomic.Bool
}

func newFault() *fault { return &fault{c: make(chan struct{})} }

func (f *fault) set(why string) { f.fail(errors.New(why)) }

func (f *fault) fail(why error) {
	f.once.Do(func() {
		f.why = why
		close(f.c)
	})
}

func (f *fault) err() error {
	select {
	case <-f.c:
		return f.why
	default:
		return nil
	}
}

// recovered records the panic of the goroutine that starts etcd; p is nil if there was none.
func (f *fault) recovered(p any) {
	switch p := p.(type) {
	case nil:
	case runtime.Error: // its text does not mention files
		f.set("etcd cannot make sense of its files")
	default:
		f.set(fmt.Sprint(p))
	}
}
