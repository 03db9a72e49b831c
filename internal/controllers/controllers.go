// Package controllers does what the API promises to happen by itself: what is being deleted goes away with all that
// belongs to it, and names that become free are taken.
//
// Controllers stand beside the path of requests. They hear of every change from the view, in the order of the log, and
// act through the same verbs as users (package rest), in process, as a named system user. For each there is x.go, which
// wires it, and x_reconcile.go, which is pure.
//
// New must be called before the view loads, so that nothing is missed. Run owns all goroutines.
package controllers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/workqueue"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/watchcache"
)

// Config is what controllers work with.
type Config struct {
	Rest    *rest.Server
	View    *watchcache.View
	Catalog *catalog.Catalog
	Now     func() time.Time
	Log     *slog.Logger
}

// Controllers are all controllers of a server.
type Controllers struct {
	config Config
	all    []*controller
}

// New returns the controllers, listening to the view.
func New(c Config) *Controllers {
	cs := &Controllers{config: c}
	cs.add("namespace-controller", newNamespaces(c), 10)
	cs.add("definition-controller", newDefinitions(c), 1)
	gc := newCollector(c)
	gc.need = cs.add(garbageCollector, gc, collectors)
	return cs
}

// reconciler is one controller's work. observe is called in the view's goroutine and must not block; it names the keys
// whose objects need a look. reconcile looks at one of them; an error means to try again later.
type reconciler interface {
	observe(ev *watchcache.Event, need func(key string))
	reconcile(ctx context.Context, key string) error
}

// controller runs a reconciler.
type controller struct {
	name    string
	work    reconciler
	queue   workqueue.TypedRateLimitingInterface[string]
	workers int
}

// retryFirst and retryMost bound the pause before an object is looked at again after an error; it doubles each time.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

// add has a reconciler hear of every change, and returns what puts a key into its queue. workers is how many keys it
// works on at a time.
func (cs *Controllers) add(name string, work reconciler, workers int) (need func(string)) {
	c := &controller{name: name, work: work, workers: workers, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryMost))}
	cs.all = append(cs.all, c)
	cs.config.View.Subscribe(func(events []*watchcache.Event) {
		for _, ev := range events {
			work.observe(ev, c.queue.Add)
		}
	})
	return c.queue.Add
}

// Run works until ctx ends, and returns when everything has stopped.
func (cs *Controllers) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range cs.all {
		for range c.workers {
			wg.Go(func() { c.run(ctx, cs.config.Log) })
		}
	}
	<-ctx.Done()
	for _, c := range cs.all {
		c.queue.ShutDown()
	}
	wg.Wait()
}

func (c *controller) run(ctx context.Context, log *slog.Logger) {
	for {
		key, stop := c.queue.Get()
		if stop {
			return
		}
		if err := c.work.reconcile(ctx, key); err != nil && ctx.Err() == nil {
			log.Info("will try again", "controller", c.name, "object", key, "error", err)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// identity is the user that a controller acts as.
func identity(name string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:kube-system:" + name, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
}
