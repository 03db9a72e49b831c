// Package control does what the API promises to happen by itself: what is being deleted goes away with all that
// belongs to it, and names that become free are taken.
//
// Controllers stand beside the path of requests. They hear of every change from the view, in the order of the log, and
// act through the same verbs as users (package rest), in process, as a named system user. For each there is x.go, which
// wires it, and x_reconcile.go, which is pure.
//
// New must be called before the view loads, so that nothing is missed. Run owns all goroutines.
package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/kinds/core/quota"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Config is what controllers work with.
type Config struct {
	Rest    *rest.Server
	View    *watchcache.View
	Catalog *catalog.Catalog
	// Tokens makes the tokens of secrets. Without it and ServerCA the controllers that need them do not run.
	Tokens *serviceaccount.Tokens
	// Pending returns what quotas have been charged for objects that are not in the view yet: quota.Plugin.Pending.
	// Optional.
	Pending func(namespace string) quota.Usage
	// ServerCA returns, in PEM, what a client must trust to talk to the server.
	ServerCA func() []byte
	Now      func() time.Time
	Log      *slog.Logger
	// Enabled chooses among Names, as kube-controller-manager's --controllers: names, names after a minus, "*" for all
	// others, "-*" for no others. Empty means all. Those that are part of kube-apiserver in Kubernetes, of definitions
	// and of the records of addresses, always run.
	Enabled []string
	// Identity is this replica's name in the election of the one whose controllers work; "" if there is no other
	// replica.
	Identity string
	// Coordination has LeaseCandidates compete for Leases; nil if they mean nothing.
	Coordination *Coordination
	// MigrateStorage begins a StorageVersionMigration whenever a definition has objects in other versions than its
	// storage version.
	MigrateStorage bool
	// Schema returns the published schema of a kind with no reference left in it.
	Schema func(r *catalog.Resource, v *catalog.Version) (*spec.Schema, error)
}

// Controllers are all controllers of a server.
type Controllers struct {
	config      Config
	leaseConfig leaseConfig
	all         []*controller
	// coordination are the controllers of LeaseCandidates, nil without. They have a seat of their own,
	// kube-apiserver's, so that of servers of both kinds that share an etcd one coordinates.
	coordination *Controllers
}

// New returns the controllers, listening to the view.
func New(c Config) *Controllers {
	cs := &Controllers{config: c, leaseConfig: ownSeat}
	if c.Coordination != nil {
		cs.coordination = &Controllers{config: c, leaseConfig: c.Coordination.seat()}
		cs.coordination.add("leader-election-controller", &coordination{c}, 1)
		cs.coordination.add("lease-candidate-collector", &candidates{c}, 1)
	}
	cs.add("definition-controller", newDefinitions(c), 1)
	cs.add(allocationRepairName, &allocationRepair{c}, 1)
	if c.Runs(Namespace) {
		cs.add(Namespace, newNamespaces(c), 10)
	}
	if c.Runs(GarbageCollector) {
		gc := newCollector(c)
		gc.need = cs.add(GarbageCollector, gc, collectors)
	}
	if c.Runs(StorageMigration) {
		cs.add(StorageMigration, &migrations{Config: c}, migrators)
	}
	if c.Runs(PolicyStatus) {
		cs.add(PolicyStatus, &policyTypes{Config: c}, policyCheckers)
	}
	if c.Runs(ResourceQuota) {
		cs.add(ResourceQuota, newQuotas(c), 5)
	}
	if c.Runs(ServiceCIDR) {
		cs.add(ServiceCIDR, &serviceRanges{c}, 1)
	}
	if c.Runs(ServiceAccount) {
		cs.add(ServiceAccount, accounts{c}, 1)
	}
	if c.Runs(RootCA) && c.ServerCA != nil {
		cs.add(RootCA, rootCA{c}, 1)
	}
	if c.Runs(ClaimProtection) {
		cs.add(ClaimProtection, newClaimProtection(c), 1)
	}
	if c.Runs(VolumeProtection) {
		cs.add(VolumeProtection, newVolumeProtection(c), 1)
	}
	if c.Runs(AttributesProtection) {
		cs.add(AttributesProtection, newAttributesProtection(c), 1)
	}
	if c.Runs(PodCollector) {
		cs.add(PodCollector, newPodCollector(c), 1)
	}
	if c.Runs(ServiceAccountToken) && c.Tokens != nil && c.ServerCA != nil {
		secrets := &tokenSecrets{Config: c}
		secrets.need = cs.add(ServiceAccountToken, secrets, 1)
	}
	return cs
}

// The controllers that can be switched off, by kube-controller-manager's names. Config.Enabled needs to know them
// before there are any.
const (
	Namespace           = "namespace-controller"
	GarbageCollector    = "garbage-collector-controller"
	PodCollector        = "pod-garbage-collector-controller"
	ResourceQuota       = "resourcequota-controller"
	ServiceAccount      = "serviceaccount-controller"
	ServiceAccountToken = "serviceaccount-token-controller"
	ServiceCIDR         = "service-cidr-controller"
	StorageMigration    = "storage-version-migrator-controller"
	PolicyStatus        = "validatingadmissionpolicy-status-controller"
	RootCA              = "root-ca-certificate-publisher-controller"

	ClaimProtection      = "persistentvolumeclaim-protection-controller"
	VolumeProtection     = "persistentvolume-protection-controller"
	AttributesProtection = "volumeattributesclass-protection-controller"
)

// Names returns the names that Config.Enabled may hold.
func Names() []string {
	return []string{
		GarbageCollector, Namespace, VolumeProtection, ClaimProtection, PodCollector, ResourceQuota, RootCA,
		ServiceCIDR, ServiceAccount, ServiceAccountToken, StorageMigration,
		PolicyStatus, AttributesProtection,
	}
}

// Runs tells whether a controller is to run: the first entry that names it decides, else whether there is a "*".
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

// reconciler is one controller's work. observe is called in the view's goroutine and must not block; it names the keys
// whose objects need a look. On a replica that does not lead it is called too, and nobody hears which keys it names;
// when the replica becomes the leader, it is called with every object once more, as Added. reconcile looks at one key;
// an error means to try again later, again when exactly.
type reconciler interface {
	observe(ev *watchcache.Event, need func(key string))
	reconcile(ctx context.Context, key string) error
}

// again is the error of a reconciler that wants to look once more after a while; nothing has failed.
type again time.Duration

func (a again) Error() string { return "again in " + time.Duration(a).String() }

// sweeper is a reconciler that wants to look at things again from time to time, because not all that matters leaves an
// event.
type sweeper interface {
	sweep(need func(key string))
}

// sweepEvery is kube's --resource-quota-sync-period.
const sweepEvery = 5 * time.Minute

// controller runs a reconciler.
type controller struct {
	name    string
	work    reconciler
	workers int
	// queue takes the keys; nil while another replica leads. A follower that kept them would keep them for ever.
	queue atomic.Pointer[queue]
}

type queue struct {
	workqueue.TypedRateLimitingInterface[string]
}

func newQueue() *queue {
	return &queue{workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryMost))}
}

// retryFirst and retryMost bound the pause before an object is looked at again after an error; it doubles each time.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

// add has a reconciler hear of every change, and returns what puts a key into its queue. workers is how many keys it
// works on at a time.
func (cs *Controllers) add(name string, work reconciler, workers int) (need func(string)) {
	c := &controller{name: name, work: work, workers: workers}
	if cs.config.Identity == "" {
		c.queue.Store(newQueue())
	}
	cs.all = append(cs.all, c)
	cs.config.View.Subscribe(func(events []*watchcache.Event) {
		for _, ev := range events {
			work.observe(ev, c.need)
		}
	})
	return c.need
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
	if cs.coordination != nil {
		others.Go(func() { cs.coordination.Run(ctx) })
	}
	if cs.config.Identity == "" {
		cs.work(ctx)
		return
	}
	newElection(cs.config, cs.leaseConfig).run(ctx, cs.lead)
}

// lead works for one term: first through everything that is there, as after a start, then on what changes.
func (cs *Controllers) lead(ctx context.Context) {
	for _, c := range cs.all {
		c.queue.Store(newQueue())
	}
	err := cs.config.View.Replay(ctx, func(events []*watchcache.Event) {
		for _, c := range cs.all {
			for _, ev := range events {
				c.work.observe(ev, c.need)
			}
		}
	})
	if err == nil {
		cs.work(ctx)
	}
	for _, c := range cs.all {
		c.queue.Swap(nil).ShutDown()
	}
}

func (cs *Controllers) work(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range cs.all {
		q := c.queue.Load()
		for range c.workers {
			wg.Go(func() { c.run(ctx, q, cs.config.Log) })
		}
		if s, ok := c.work.(sweeper); ok {
			wg.Go(func() { sweepUntil(ctx, s, q.Add) })
		}
		context.AfterFunc(ctx, q.ShutDown)
	}
	wg.Wait()
}

func sweepUntil(ctx context.Context, s sweeper, need func(string)) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.sweep(need)
		}
	}
}

func (c *controller) run(ctx context.Context, q *queue, log *slog.Logger) {
	for {
		key, stop := q.Get()
		if stop {
			return
		}
		err := c.work.reconcile(ctx, key)
		var later again
		switch {
		case err == nil || ctx.Err() != nil:
			q.Forget(key)
		case errors.As(err, &later):
			q.Forget(key)
			q.AddAfter(key, time.Duration(later))
		default:
			log.Info("will try again", "controller", c.name, "object", key, "error", err)
			q.AddRateLimited(key)
		}
		q.Done(key)
	}
}

// itself is the user that the server acts as where Kubernetes has kube-apiserver do it. Policies and webhooks may know
// it by its name.
func itself() user.Info {
	return &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	}
}

// identity is the user that a controller acts as which Kubernetes has in kube-controller-manager.
func identity(name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + name,
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
	}
}
