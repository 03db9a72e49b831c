package control

import (
	"context"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Loop is one controller to add to a server.
type Loop struct {
	// Name is Kubernetes' name of the controller.
	Name string
	Work Reconciler
	// Workers is how many keys it works on at a time.
	Workers int
	// Pooled includes the loop in the common limit of concurrent keys of all pooled loops, for loops with many busy
	// keys.
	Pooled bool
	// Election is the Lease that replicas compete for before the loop runs; nil means the common one.
	Election *Election
}

// Reconciler is one controller's work.
//
// Observe is called in the view's goroutine and must not block; it requests the keys to reconcile. It is also called on
// a replica that does not lead, and its keys are then dropped; when the replica becomes the leader, it is called with
// every object once more, as Added. Reconcile handles one key; an error means to retry later, an Again at a given time.
type Reconciler interface {
	Observe(ev *watchcache.Event, need func(key string))
	Reconcile(ctx context.Context, key string) error
}

// Again is the error of a Reconciler that must run again after a while; it is not a failure.
type Again time.Duration

// Error returns the time as text.
func (a Again) Error() string { return "again in " + time.Duration(a).String() }

// Sweeper is a Reconciler that also runs periodically, because some relevant changes cause no event.
type Sweeper interface {
	Sweep(need func(key string))
}

// Pacer is a Reconciler of a pooled loop with expensive keys. Rest returns how long a key that has just been handled
// must rest, whatever is requested meanwhile, so that the loop does not occupy the whole machine. Less than a
// millisecond counts as zero.
type Pacer interface {
	Rest(key string) time.Duration
}

// Requester is a Reconciler that requests keys outside of Observe. Requests is called once, before all other methods.
type Requester interface {
	Requests(need func(key string))
}

// Runner is a Reconciler with a background task while this replica leads. Run returns after ctx and all of its
// goroutines have ended.
type Runner interface {
	Run(ctx context.Context)
}

// sweepEvery is kube's --resource-quota-sync-period.
const sweepEvery = 5 * time.Minute
