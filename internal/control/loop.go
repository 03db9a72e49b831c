package control

import (
	"context"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Loop is one controller, as it is added to those of a server.
type Loop struct {
	// Name is kube's name for the controller.
	Name string
	Work Reconciler
	// Workers is how many keys it works on at a time.
	Workers int
	// Pooled bounds how many keys it and all other pooled loops work on at a time together, for loops of which many
	// can be busy at once.
	Pooled bool
	// Election is the Lease that replicas compete for before the loop works; nil for that of most controllers.
	Election *Election
}

// Reconciler is one controller's work.
//
// Observe is called in the view's goroutine and must not block; it names the keys whose objects need a look. On a
// replica that does not lead it is called too, and the keys that it names are dropped; when the replica becomes the
// leader, it is called with every object once more, as Added. Reconcile looks at one key; an error means to try again
// later, Again when exactly.
type Reconciler interface {
	Observe(ev *watchcache.Event, need func(key string))
	Reconcile(ctx context.Context, key string) error
}

// Again is the error of a Reconciler that wants to look once more after a while; nothing has failed.
type Again time.Duration

// Error says when.
func (a Again) Error() string { return "again in " + time.Duration(a).String() }

// Sweeper is a Reconciler that wants to look at things again from time to time, because not all that matters leaves an
// event.
type Sweeper interface {
	Sweep(need func(key string))
}

// Pacer is a Reconciler of a pooled loop that looks at much for one key. Rest returns how long the key, of which a look
// has just ended, is left alone whatever is named meanwhile, so that looks do not take all of the machine while there
// is much to see. Less than a millisecond is nothing.
type Pacer interface {
	Rest(key string) time.Duration
}

// Requester is a Reconciler that names keys at other times than in Observe. Requests is called once, before anything
// else.
type Requester interface {
	Requests(need func(key string))
}

// Runner is a Reconciler that has something to do beside its queue as long as this replica leads. Run returns when ctx
// has ended and all that it has started.
type Runner interface {
	Run(ctx context.Context)
}

// sweepEvery is kube's --resource-quota-sync-period.
const sweepEvery = 5 * time.Minute
