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

// remote is an APIService of another server. Its spec is immutable: a changed APIService is a new remote, which takes
// over the state of the other server if the server is the same.
type remote struct {
	name, uid string
	version   catalog.GroupVersionName
	spec      apiregistrationv1.APIServiceSpec
	backend   *backend
	handle    front.Handler

	// state is how the other server was when it was last checked; nil before that.
	state     atomic.Pointer[state]
	addresses atomic.Pointer[addresses]
	// documents are the server's last documents, never nil.
	documents atomic.Pointer[documents]

	mu struct {
		sync.Mutex
		checked  chan struct{} // closed after the next check
		failures int           // number of consecutive failed checks
		// unread counts the checks at which it was available but its resources could not be read.
		unread int
		// reached is true if it has been available.
		reached bool
	}
	// service is the entry for the catalog; guarded by aggregator.mu.
	service *catalog.Service
}

// state is the condition Available of an APIService.
type state struct {
	status          apiregistrationv1.ConditionStatus
	reason, message string
	at              time.Time // of the check
	// answered is true if the server is unavailable and yet answers: it may still list its resources, and Kubernetes
	// then shows them.
	answered bool
}

func (s *state) available() bool { return s != nil && s.status == apiregistrationv1.ConditionTrue }

// read decodes an entry, or returns nil if it is unreadable.
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

// set records the result of a check.
func (r *remote) set(s *state) {
	r.state.Store(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.available() {
		r.mu.failures, r.mu.reached = 0, true
	} else {
		r.mu.failures++
	}
	if r.mu.checked != nil {
		close(r.mu.checked)
		r.mu.checked = nil
	}
}

// reached reports whether the other server has been available.
func (r *remote) reached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.reached
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

// The intervals of checks: checkEvery while the server is available, else a growing back-off. A request for the server
// brings the next check forward, but not below checkAtMost.
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

// The time that a request waits for a check: for the first one, and for a new one of an unavailable server.
const (
	patienceFirst = 6 * time.Second
	patienceAgain = 250 * time.Millisecond
)

// await returns the state of the other server. If it was unavailable, await waits for another check, so that the first
// request after its recovery succeeds.
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
