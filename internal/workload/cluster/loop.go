package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Loop declares a controller that is built on a Cluster.
//
// Before each Reconcile it waits until the view shows all writes of this process. control.Again counts by the cluster's
// clock.
func Loop(name string, workers int, make func(c *Cluster) control.Reconciler) part.Loop {
	return part.Loop{Name: name, Workers: workers, Pooled: true, New: func(h *part.Host) control.Reconciler {
		return Timed(h, make(Controller(h, name)))
	}}
}

// Timed wraps a reconciler as Loop describes.
func Timed(h *part.Host, r control.Reconciler) control.Reconciler {
	t := &timed{host: h, work: r}
	t.alarms.stops = map[string]func() bool{}
	if h.OnStop != nil { // nil in tests
		h.OnStop(t.stop)
	}
	if _, ok := r.(control.Sweeper); ok {
		return swept{t}
	}
	return t
}

// stop cancels pending timers: a pending timer would keep the server in memory.
func (t *timed) stop() error {
	t.alarms.Lock()
	defer t.alarms.Unlock()
	for _, stop := range t.alarms.stops {
		stop()
	}
	clear(t.alarms.stops)
	t.alarms.over = true
	return nil
}

// timed is a reconciler with pauses that count by the cluster's clock.
type timed struct {
	host *part.Host
	work control.Reconciler
	need func(string)

	alarms struct {
		sync.Mutex
		stops map[string]func() bool // cancels the pending timer of a key
		over  bool
	}
}

// Requests implements control.Requester.
func (t *timed) Requests(need func(string)) {
	t.need = need
	if r, ok := t.work.(control.Requester); ok {
		r.Requests(need)
	}
}

func (t *timed) Observe(ev *watchcache.Event, need func(string)) { t.work.Observe(ev, need) }

// Rest implements control.Pacer.
func (t *timed) Rest(key string) time.Duration {
	if p, ok := t.work.(control.Pacer); ok {
		return p.Rest(key)
	}
	return 0
}

// swept is timed for a reconciler that sweeps: others need no goroutine for that.
type swept struct{ *timed }

// Sweep implements control.Sweeper.
func (t swept) Sweep(need func(string)) { t.work.(control.Sweeper).Sweep(need) }

func (t *timed) Reconcile(ctx context.Context, key string) error {
	if err := t.host.View.FreshOwn(ctx); err != nil {
		return err
	}
	err := t.work.Reconcile(ctx, key)
	var later control.Again
	if errors.As(err, &later) {
		t.at(key, max(1, time.Duration(later)))
		return nil
	}
	t.at(key, 0)
	return err
}

// at has a key looked at after a while, and not when it was to be before; 0 is never.
func (t *timed) at(key string, d time.Duration) {
	t.alarms.Lock()
	defer t.alarms.Unlock()
	if stop := t.alarms.stops[key]; stop != nil {
		stop()
		delete(t.alarms.stops, key)
	}
	if d <= 0 || t.alarms.over {
		return
	}
	t.alarms.stops[key] = t.host.AfterFunc(d, func() { t.need(key) })
}

// Stages reports which kinds are run by Stages, in the place of their built-in simulation.
type Stages interface {
	// Replace reports whether Stages run all objects of a kind.
	Replace(kind schema.GroupKind) bool
	// OnChange registers f, which is called when the result of Replace may have changed. Call it before the loops
	// start. f must not block.
	OnChange(f func())
}
