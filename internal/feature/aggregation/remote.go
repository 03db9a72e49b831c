package aggregation

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// remote is an APIService for which another server answers. What it says is never changed: a changed APIService is
// another remote, which goes on with what is known of the other server if that is the same.
type remote struct {
	name, uid string
	version   catalog.GroupVersionName
	spec      apiregistrationv1.APIServiceSpec
	backend   *backend
	handle    front.Handler

	// state is how the other server was when it was last checked; nil before that.
	state     atomic.Pointer[state]
	addresses atomic.Pointer[addresses]
	// documents are what it has last said of itself, never nil.
	documents atomic.Pointer[documents]

	mu struct {
		sync.Mutex
		checked  chan struct{} // closed after the next check
		failures int           // checks that have failed one after another
		// unread counts how often it was available, and its resources could not be read.
		unread int
	}
	// service is what the catalog is told; guarded by aggregator.mu.
	service *catalog.Service
}

// state is the condition Available of an APIService.
type state struct {
	status          apiregistrationv1.ConditionStatus
	reason, message string
	at              time.Time // of the check
	// answered is true of a server that is not available and yet answers: it may say what it serves all the same, which
	// is what Kubernetes shows then.
	answered bool
}

func (s *state) available() bool { return s != nil && s.status == apiregistrationv1.ConditionTrue }

// read returns what an entry says, nil if it cannot be read.
func read(e *watchcache.Entry) *apiregistrationv1.APIService {
	s := &apiregistrationv1.APIService{}
	if json.Unmarshal(e.JSON(), s) != nil {
		return nil
	}
	if s.Spec.Service != nil && s.Spec.Service.Port == nil {
		port := int32(443)
		s.Spec.Service.Port = &port
	}
	return s
}

// path is where the other server lists its resources.
func (r *remote) path() string {
	if r.version.Group == "" {
		return "/api/" + r.version.Version
	}
	return "/apis/" + r.version.Group + "/" + r.version.Version
}

// set notes what a check has found.
func (r *remote) set(s *state) {
	r.state.Store(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.available() {
		r.mu.failures = 0
	} else {
		r.mu.failures++
	}
	if r.mu.checked != nil {
		close(r.mu.checked)
		r.mu.checked = nil
	}
}

// learned notes whether the resources of the other server could be read, and returns how often in turn they could not.
func (r *remote) learned(ok bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.unread++
	if ok {
		r.mu.unread = 0
	}
	return r.mu.unread
}

// next returns a channel that is closed after the next check.
func (r *remote) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.checked == nil {
		r.mu.checked = make(chan struct{})
	}
	return r.mu.checked
}

// How often the other server is checked: now and then while it is available, and soon again, then more seldom, while it
// is not. A request for it brings the next check forward, but not more often than each checkAtMost.
const (
	checkEvery   = 30 * time.Second
	recheckFirst = 100 * time.Millisecond
	checkAtMost  = 50 * time.Millisecond
)

// pause returns when to check again.
func (r *remote) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	failures := max(r.mu.failures, r.mu.unread)
	if failures == 0 {
		return checkEvery
	}
	return min(checkEvery, recheckFirst<<min(failures-1, 10))
}

// How long a request waits for a check: for the first one, and for one more of a server that was not available.
const (
	patienceFirst = 6 * time.Second
	patienceAgain = 250 * time.Millisecond
)

// await returns how the other server is. If it was not available it is checked once more, so that the first request
// after it has come back finds it.
func (a *aggregator) await(ctx context.Context, r *remote) *state {
	s := r.state.Load()
	if s.available() {
		return s
	}
	patience, pause := patienceFirst, time.Duration(0)
	if s != nil {
		patience, pause = patienceAgain, max(0, checkAtMost-a.host.Now().Sub(s.at))
	}
	checked := r.next()
	a.queue.AddAfter(r.name, pause)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-checked:
	case <-timer.C:
	case <-ctx.Done():
	}
	return r.state.Load()
}
