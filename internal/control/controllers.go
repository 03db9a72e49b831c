// Package control does what the API promises to happen by itself: what is being deleted goes away with all that
// belongs to it, and names that become free are taken.
//
// Controllers stand beside the path of requests. They hear of every change from the view, in the order of the log, and
// act through the same verbs as users (package verb), in process, as a named system user. For each there is x.go, which
// wires it, and x_reconcile.go, which is pure.
//
// New must be called before the view loads, so that nothing is missed. Run owns all goroutines.
package control

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Config is what controllers work with.
type Config struct {
	Verbs   *verb.Verbs
	View    *watchcache.View
	Catalog *catalog.Catalog
	Now     func() time.Time
	Log     *slog.Logger
	// Enabled chooses among Names, as kube-controller-manager's --controllers: names, names after a minus, "*" for all
	// others, "-*" for no others. Empty means all.
	Enabled []string
	// Identity is this replica's name in the election of the one whose controllers work; "" if there is no other
	// replica.
	Identity string
	// Elsewhere deletes what other servers have in a namespace that is being deleted, and returns what is left. nil if
	// there are no other servers.
	Elsewhere func(ctx context.Context, namespace string) Elsewhere
	// Remote are the servers that answer for the catalog's Remote versions; nil if there can be none.
	Remote Remote
	// MigrateStorage begins a StorageVersionMigration whenever a definition has objects in other versions than its
	// storage version.
	MigrateStorage bool
}

// Remote are other servers.
type Remote interface {
	// As returns what sends requests to them as a user of this one. The path says to which.
	As(who user.Info) http.RoundTripper
	// OnCreate has f called with the path of a resource after a client has created an object there by way of this
	// server. f must not block.
	OnCreate(f func(path string))
}

// Controllers are all controllers of a server that compete for one Lease, with those that compete for others.
type Controllers struct {
	config   Config
	election Election
	all      []*controller
	// others have a Lease of their own.
	others map[*Election]*Controllers
	// pool is where the keys of all are worked on; nil before the first of them, and while another replica leads.
	pool *pool

	working atomic.Bool  // this replica's loops work
	heard   atomic.Int64 // when another replica was last seen to lead, Unix nanoseconds by the own clock; 0 for never
}

// Check returns nil if the loops work, here or in another replica, and else why not: it is not yet known who leads.
func (cs *Controllers) Check(context.Context) error {
	heard := cs.heard.Load()
	recent := heard != 0 && time.Since(time.Unix(0, heard)) < cs.election.Duration
	switch {
	case cs.config.Identity == "", cs.working.Load(), recent:
		return nil
	case heard != 0:
		return errors.New("the server whose controllers work has been silent; another one will take over")
	}
	return errors.New("no server is known yet whose controllers work")
}

// New returns the controllers of the core, listening to the view.
func New(c Config) *Controllers {
	cs := &Controllers{config: c, election: ownElection, others: map[*Election]*Controllers{}}
	cs.Add(Loop{Name: "definition-controller", Work: newDefinitions(c), Workers: 1})
	if c.Runs(Namespace) {
		cs.Add(Loop{Name: Namespace, Work: newNamespaces(c), Workers: 10})
	}
	if c.Runs(GarbageCollector) {
		cs.Add(Loop{Name: GarbageCollector, Work: newCollector(c), Workers: collectors})
	}
	if c.Runs(StorageMigration) {
		cs.Add(Loop{Name: StorageMigration, Work: &migrations{Config: c}, Workers: migrators})
	}
	return cs
}

// The controllers of the core that can be switched off, by kube-controller-manager's names.
const (
	Namespace        = "namespace-controller"
	GarbageCollector = "garbage-collector-controller"
	StorageMigration = "storage-version-migrator-controller"
)

// Names returns the names of the core's controllers that Config.Enabled may hold. Parts add theirs.
func Names() []string { return []string{GarbageCollector, Namespace, StorageMigration} }

// Runs reports whether a controller is to run: the first entry that names it decides, else whether there is a "*".
func (c Config) Runs(name string) bool {
	all := len(c.Enabled) == 0
	for _, e := range c.Enabled {
		switch e {
		case name:
			return true
		case "-" + name:
			return false
		case "*":
			all = true
		}
	}
	return all
}

// controller runs a reconciler.
type controller struct {
	name    string
	work    Reconciler
	workers int
	pooled  bool
	// queue takes the keys; nil while another replica leads. A follower that kept them would keep them for ever.
	queue atomic.Pointer[member]
}

// open gives a controller its part of the pool.
func (cs *Controllers) open(c *controller) {
	if cs.pool == nil {
		cs.pool = newPool(cs.config.Log)
	}
	c.queue.Store(cs.pool.join(c))
}

// retryFirst and retryMost bound the pause before an object is looked at again after an error; it doubles each time.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

// Add has a loop hear of every change. It is called before the view loads, so that nothing is missed.
func (cs *Controllers) Add(l Loop) {
	if e := l.Election; e != nil {
		if cs.others[e] == nil {
			cs.others[e] = &Controllers{config: cs.config, election: *e}
		}
		l.Election = nil
		cs.others[e].Add(l)
		return
	}
	c := &controller{name: l.Name, work: l.Work, workers: l.Workers, pooled: l.Pooled}
	if cs.config.Identity == "" {
		cs.open(c)
	}
	cs.all = append(cs.all, c)
	if r, ok := l.Work.(Requester); ok {
		r.Requests(c.need)
	}
	cs.config.View.Subscribe(func(events []*watchcache.Event) {
		c.observe(events)
	})
}

// observe tells the loop of events. Of an object that cannot be read it goes on knowing what it knows, until the object
// can be read again or is gone.
func (c *controller) observe(events []*watchcache.Event) {
	need := c.need // once for all: it is allocated
	for _, ev := range events {
		if ev = ev.Readable(); ev != nil {
			c.work.Observe(ev, need)
		}
	}
}

func (c *controller) need(key string) {
	if q := c.queue.Load(); q != nil {
		q.Add(key)
	}
}

// Run works until ctx ends, and returns when everything has stopped. Among replicas it works while this one leads.
func (cs *Controllers) Run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	for _, other := range cs.others {
		others.Go(func() { other.Run(ctx) })
	}
	if cs.config.Identity == "" {
		cs.work(ctx)
		return
	}
	e := newElection(cs.config, cs.election)
	e.heard = &cs.heard
	e.run(ctx, cs.lead)
}

// lead works for one term: first through everything that is there, as after a start, then on what changes.
func (cs *Controllers) lead(ctx context.Context) {
	for _, c := range cs.all {
		cs.open(c)
	}
	err := cs.config.View.Replay(ctx, func(events []*watchcache.Event) {
		for _, c := range cs.all {
			c.observe(events)
		}
	})
	if err == nil {
		cs.work(ctx)
	}
	for _, c := range cs.all {
		c.queue.Store(nil)
	}
	if cs.pool != nil {
		cs.pool.shutDown()
		cs.pool = nil
	}
}

func (cs *Controllers) work(ctx context.Context) {
	cs.working.Store(true)
	defer cs.working.Store(false)
	var wg sync.WaitGroup
	for _, c := range cs.all {
		q := c.queue.Load()
		if r, ok := c.work.(Runner); ok {
			wg.Go(func() { r.Run(ctx) })
		}
		if s, ok := c.work.(Sweeper); ok {
			wg.Go(func() { sweepUntil(ctx, s, q.Add) })
		}
	}
	if cs.pool != nil {
		wg.Go(func() { cs.pool.run(ctx) })
	}
	wg.Wait()
}

func sweepUntil(ctx context.Context, s Sweeper, need func(string)) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Sweep(need)
		}
	}
}
