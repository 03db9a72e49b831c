// Package control runs the controllers that the API promises: they complete deletions together with dependent objects,
// and assign names that become free.
//
// Controllers stand beside the path of requests. They receive every change from the view, in the order of the log, and
// act through the same verbs as users (package verb), in process, as a named system user. Each has a file x.go, which
// wires it, and x_reconcile.go, which is pure.
//
// Call New before the view loads, so that no change is missed. Run owns all goroutines.
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

// Config holds the dependencies of controllers.
type Config struct {
	Verbs   *verb.Verbs
	View    *watchcache.View
	Catalog *catalog.Catalog
	Now     func() time.Time
	Log     *slog.Logger
	// Runs reports whether a controller of Names is switched on.
	Runs func(name string) bool
	// Identity is this replica's name in the leader election for controllers; "" without other replicas.
	Identity string
	// AfterFunc calls a function after a while by the clock of Now.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Contents are other servers' objects in namespaces; nil without other servers.
	Contents Contents
	// NamespaceGrace is how long the deletion of a namespace waits for servers that do not answer. Negative is forever.
	NamespaceGrace time.Duration
	// Remote represents the servers for the catalog's Remote versions; nil if there can be none.
	Remote Remote
	// MigrateStorage starts a StorageVersionMigration whenever a definition has objects in other versions than its
	// storage version.
	MigrateStorage bool
}

// Contents are other servers' objects in namespaces.
type Contents interface {
	// Empty deletes the objects in a namespace that is being deleted, and returns the rest.
	Empty(ctx context.Context, namespace string) Elsewhere
	// Leave records that silent servers may still have objects in a namespace, before the namespace goes.
	Leave(ctx context.Context, ns *watchcache.Entry, silent []Silent) error
}

// Remote are other servers.
type Remote interface {
	// As returns a transport to these servers as a user of this one. The path selects the server.
	As(u user.Info) http.RoundTripper
	// OnCreate registers f, which is called with the path of a resource after a client has created an object there
	// through this server. f must not block.
	OnCreate(f func(path string))
}

// Controllers holds the controllers of a server: the ones that share a Lease, and the ones with a Lease of their own.
type Controllers struct {
	config   Config
	election Election
	all      []*controller
	// others have a Lease of their own.
	others map[*Election]*Controllers
	// pool works on the keys of all loops; nil before the first, and while another replica leads.
	pool *pool

	working  atomic.Bool  // this replica's loops run
	lastSeen atomic.Int64 // when another replica was last seen to lead, Unix nanoseconds by own clock; 0: never
}

// Check returns nil if the loops run, on this or another replica, otherwise the reason: no leader is known yet.
func (cs *Controllers) Check(context.Context) error {
	lastSeen := cs.lastSeen.Load()
	recent := lastSeen != 0 && time.Since(time.Unix(0, lastSeen)) < cs.election.Duration
	switch {
	case cs.config.Identity == "", cs.working.Load(), recent:
		return nil
	case lastSeen != 0:
		return errors.New("the leader of the controllers has been silent; another server will take over")
	}
	return errors.New("no server leads the controllers yet")
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

// Names returns the names of the core's controllers that Config.Runs receives. Parts add theirs.
func Names() []string { return []string{GarbageCollector, Namespace, StorageMigration} }

// controller runs a reconciler.
type controller struct {
	name    string
	work    Reconciler
	workers int
	pooled  bool
	// queue receives the keys; nil while another replica leads, since a follower would keep them for ever.
	queue atomic.Pointer[member]
}

// open adds a controller to the pool.
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

// Add registers a loop for every change. Call it before the view loads, so that no change is missed.
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

// observe passes events to the loop. For an object that becomes unreadable it passes nothing until the object is
// readable again or deleted.
func (c *controller) observe(events []*watchcache.Event) {
	need := c.need // evaluated once, because it allocates
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

// Run runs the controllers until ctx ends, and returns when all have stopped. With several replicas they run while this
// one leads.
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
	e.lastSeen = &cs.lastSeen
	e.run(ctx, cs.lead)
}

// lead runs the controllers for one term: first for all existing objects, as after a start, then for changes.
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
