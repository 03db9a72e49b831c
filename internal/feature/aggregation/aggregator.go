package aggregation

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/kinds/apiregistration"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// aggregator holds the APIServices of other servers, forwards requests to them, and checks their health.
type aggregator struct {
	host      *part.Host
	settings  Settings
	resolver  webhook.Resolver
	proxy     *httputil.ReverseProxy
	keep      *documentStore
	metrics   *metrics
	leftovers *leftovers
	// certificates counts servers with certificates that current clients do not accept.
	certificates *webhook.Certificates
	// onCreate is called with the path of a resource after a client has created an object in it; may be nil.
	onCreate func(path string)

	// returned is called with the group of a server that has become available; may be nil.
	returned func(group string)

	// table routes requests; nil if this server answers all of them.
	table atomic.Pointer[table]
	// queue holds the names of the APIServices to check, and documents the names with documents to read.
	queue, documents workqueue.TypedDelayingInterface[string]
	// begun is closed at the first work item.
	begun chan struct{}
	begin func()

	mu struct {
		sync.Mutex
		remotes  map[string]*remote
		backends map[backendKey]*backend
		// local are this server's own APIServices with changed priorities.
		local map[string]*catalog.Service
	}
}

// table maps group versions to other servers. It is immutable.
type table map[catalog.GroupVersionName]*remote

func newAggregator(h *part.Host, s Settings) *aggregator {
	a := &aggregator{
		host: h, settings: s, resolver: webhook.Resolver{Catalog: h.Catalog, View: h.View}, begun: make(chan struct{}),
		queue: workqueue.NewTypedDelayingQueue[string](), documents: workqueue.NewTypedDelayingQueue[string](),
		keep: newDocumentStore(h.Dir), metrics: newMetrics(),
		certificates: webhook.NewCertificates("apiserver_kube_aggregator"),
		leftovers:    &leftovers{host: h, ledger: leftover.NewLedger(h)},
	}
	a.begin = sync.OnceFunc(func() { close(a.begun) })
	a.proxy = a.newProxy()
	a.mu.remotes, a.mu.backends = map[string]*remote{}, map[backendKey]*backend{}
	a.mu.local = map[string]*catalog.Service{}
	h.View.Subscribe(a.observe)
	return a
}

// elsewhere returns the handler of a request that another server answers, or nil for all other requests.
func (a *aggregator) elsewhere(_ *http.Request, info *request.Info) front.Handler {
	t := a.table.Load()
	if t == nil {
		return nil
	}
	name := catalog.GroupVersionName{Group: info.Group, Version: info.Version}
	if !info.IsResource {
		var ok bool
		if name, ok = versionOf(info.Path); !ok {
			return nil
		}
	}
	if r := (*t)[name]; r != nil {
		return r.handle
	}
	return nil
}

// versionOf parses the path of a version's resources: /apis/<group>/<version>, or /api/<version>.
func versionOf(path string) (catalog.GroupVersionName, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 3 && parts[0] == "apis":
		return catalog.GroupVersionName{Group: parts[1], Version: parts[2]}, true
	case len(parts) == 2 && parts[0] == "api":
		return catalog.GroupVersionName{Version: parts[1]}, true
	}
	return catalog.GroupVersionName{}, false
}

// observe receives every change, in the view's goroutine.
func (a *aggregator) observe(events []*watchcache.Event) {
	changed := false
	for _, ev := range events {
		if ev = ev.Readable(); ev == nil {
			continue
		}
		if ev.Collection.Prefix() == ref.APIServices.Prefix {
			changed = a.observeService(ev) || changed
			continue
		}
		namespace, name := concerns(ev)
		if name == "" || a.table.Load() == nil {
			continue
		}
		for _, r := range *a.table.Load() {
			if s := r.spec.Service; s.Namespace == namespace && s.Name == name {
				a.queue.Add(r.name)
			}
		}
	}
	if changed {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.publishLocked()
	}
}

// observeService records a changed APIService, and reports whether the change may affect serving.
func (a *aggregator) observeService(ev *watchcache.Event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := ev.Entry.Name
	old := a.mu.remotes[name]
	var s *apiregistrationv1.APIService
	if ev.Type != watchcache.Deleted {
		s = read(ev.Entry)
	}
	_, local := a.mu.local[name]
	if s == nil || s.Spec.Service == nil {
		a.metrics.setLocal(name, s != nil)
		delete(a.mu.remotes, name)
		delete(a.mu.local, name)
		if s != nil {
			a.observeLocalLocked(s)
		}
		if old != nil {
			a.need(name) // to drop its documents
		}
		return old != nil || local || a.mu.local[name] != nil
	}
	delete(a.mu.local, name)
	r := a.newRemoteLocked(ev.Entry, s)
	if old != nil && old.uid == r.uid && equal(&old.spec, &r.spec) {
		return false // only status or metadata have changed
	}
	if old != nil && old.uid == r.uid {
		r.documents.Store(old.documents.Load())
	}
	a.mu.remotes[name] = r
	a.need(name)
	return true
}

// observeLocalLocked records an APIService that this server answers.
func (a *aggregator) observeLocalLocked(s *apiregistrationv1.APIService) {
	natural := wanted(a.host.Catalog.Snapshot(), s.Name)
	if s.Labels[managedLabel] == "" && (natural == nil || natural.spec.VersionPriority != s.Spec.VersionPriority ||
		natural.spec.GroupPriorityMinimum != s.Spec.GroupPriorityMinimum) {
		a.mu.local[s.Name] = &catalog.Service{
			GroupVersionName: catalog.GroupVersionName{Group: s.Spec.Group, Version: s.Spec.Version},
			GroupPriority:    int(s.Spec.GroupPriorityMinimum), Priority: int(s.Spec.VersionPriority),
		}
	}
	if c := s.Status.Conditions; len(c) != 1 || c[0].Reason != "Local" {
		a.need(s.Name)
	}
}

// need requests a check.
func (a *aggregator) need(name string) {
	a.begin()
	a.queue.Add(name)
}

func equal(a, b *apiregistrationv1.APIServiceSpec) bool {
	return a.Group == b.Group && a.Version == b.Version && a.GroupPriorityMinimum == b.GroupPriorityMinimum &&
		a.VersionPriority == b.VersionPriority && *a.Service.Port == *b.Service.Port && keyOf(a) == keyOf(b)
}

// newRemoteLocked returns the remote of an APIService, with existing connections to its service.
func (a *aggregator) newRemoteLocked(e *watchcache.Entry, s *apiregistrationv1.APIService) *remote {
	key := keyOf(&s.Spec)
	b := a.mu.backends[key]
	if b == nil {
		b = newBackend(&s.Spec, a.host.Egress.Dial(egress.Cluster), a.certificate)
		a.mu.backends[key] = b
	}
	r := &remote{
		name: s.Name, uid: e.UID, spec: s.Spec, backend: b,
		version: catalog.GroupVersionName{Group: s.Spec.Group, Version: s.Spec.Version},
	}
	r.documents.Store(&documents{stale: true})
	r.handle = a.leftovers.handler(r, a.handler(r))
	return r
}

func (a *aggregator) certificate() *tls.Certificate {
	if a.host.Certificates == nil {
		return nil
	}
	return a.host.Certificates.ProxyClient()
}

// publishLocked updates the routing table and the published API groups.
func (a *aggregator) publishLocked() {
	var services []*catalog.Service
	used := map[backendKey]bool{}
	next := table{}
	for _, r := range a.mu.remotes {
		next[r.version] = r
		used[keyOf(&r.spec)] = true
		r.describe()
		services = append(services, r.service)
	}
	for _, s := range a.mu.local {
		services = append(services, s)
	}
	for key, b := range a.mu.backends {
		if !used[key] {
			delete(a.mu.backends, key)
			b.CloseIdle()
		}
	}
	// A version must be routed before it is published, and unpublished before it is unrouted.
	if len(next) > 0 {
		a.table.Store(&next)
	}
	a.host.Catalog.SetServices(services)
	if len(next) == 0 {
		a.table.Store(nil)
	}
}

// describe updates r.service, and replaces it only if it has changed.
func (r *remote) describe() {
	docs, s := r.documents.Load(), r.state.Load()
	stale := !s.available() && (s == nil || !s.answered)
	if s := r.service; s != nil && s.Remote.Stale == (stale || docs.stale) && s.Remote.Key == docs {
		return
	}
	r.service = &catalog.Service{
		GroupVersionName: r.version, GroupPriority: int(r.spec.GroupPriorityMinimum),
		Priority: int(r.spec.VersionPriority),
		Remote: &catalog.Remote{
			Key: docs, Resources: docs.resources, Stale: stale || docs.stale, V3: docs.v3.document(),
			V2: docs.v2.document(),
		},
	}
}

// The numbers of concurrent checks and reads. A server that does not answer takes seconds, and must not delay the
// checks of others.
const (
	checkers = 64
	readers  = 8 // of documents, which may be large
)

// run processes the queues until ctx ends.
func (a *aggregator) run(ctx context.Context) error {
	defer a.queue.ShutDown()
	defer a.documents.ShutDown()
	select {
	case <-a.begun:
	case <-ctx.Done():
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { dispatch(ctx, a.queue, checkers, a.reconcile) })
	wg.Go(func() { dispatch(ctx, a.documents, readers, a.readDocuments) })
	<-ctx.Done()
	a.queue.ShutDown()
	a.documents.ShutDown()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.mu.backends {
		b.CloseIdle()
	}
	return nil
}

// dispatch calls f for the names of a queue, up to n at the same time, until the queue is shut down.
func dispatch(ctx context.Context, queue workqueue.TypedInterface[string], n int, f func(context.Context, string)) {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, n) // a slot for each running call
	for {
		name, stop := queue.Get()
		if stop {
			return
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() {
				queue.Done(name)
				<-places
			}()
			if ctx.Err() == nil {
				f(ctx, name)
			}
		})
	}
}

func (a *aggregator) find(name string) *remote {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.remotes[name]
}

// reconcile checks an APIService and records the result.
func (a *aggregator) reconcile(ctx context.Context, name string) {
	r := a.find(name)
	if r == nil {
		a.forget(ctx, name)
		return
	}
	now := a.host.Now()
	s, body := a.check(ctx, r)
	if ctx.Err() != nil {
		return
	}
	s.at = now
	was := r.state.Load()
	r.set(s)
	if s.available() || s.answered { // clients that wait for the condition then find it in discovery
		a.learn(ctx, r, body)
	}
	if !was.available() && s.available() && a.returned != nil {
		a.returned(r.version.Group)
	}
	r.backend.rest()
	if was.available() != s.available() {
		a.host.Log.Info("availability of an aggregated API changed", "apiService", name, "available", s.available(),
			"reason", s.reason, "message", s.message)
	}
	a.mu.Lock()
	if a.mu.remotes[name] == r {
		a.publishLocked()
	}
	a.mu.Unlock()
	a.metrics.set(name, s)
	if err := a.report(ctx, name, s); err != nil && ctx.Err() == nil {
		a.host.Log.Info("the status of an APIService cannot be written; retried after the next check",
			"apiService", name, "error", err)
	}
	if s.available() {
		a.documents.Add(name)
	}
	a.queue.AddAfter(name, r.pause())
}

// forget drops the state of an APIService that no other server answers any more.
func (a *aggregator) forget(ctx context.Context, name string) {
	a.keep.remove(name)
	e := a.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", name)
	if e == nil {
		a.metrics.setLocal(name, false)
		return
	}
	if s := read(e); s == nil || s.Spec.Service != nil {
		return
	}
	local := apiregistration.LocalCondition(a.host.Now())
	err := a.report(ctx, name, &state{
		status: apiregistrationv1.ConditionTrue, reason: object.String(local, "reason"),
		message: object.String(local, "message"),
	})
	if err != nil && ctx.Err() == nil {
		a.host.Log.Info("the status of an APIService cannot be written", "apiService", name, "error", err)
	}
}

// report writes the condition if it has changed.
func (a *aggregator) report(ctx context.Context, name string, s *state) error {
	e := a.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", name)
	if e == nil {
		return nil
	}
	have := read(e)
	if have == nil || slices.ContainsFunc(have.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == s.status && c.Reason == s.reason &&
			c.Message == s.message
	}) {
		return nil
	}
	call, err := a.host.Verbs.Call(Resource, "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = a.host.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			if object.String(object.Map(obj, "metadata"), "uid") != e.UID {
				return nil, errChanged
			}
			obj["status"] = object.Object{"conditions": a.condition(object.Map(obj, "status"), s)}
			return a.host.Verbs.New(call, obj)
		})
	if apierrors.IsNotFound(err) || errors.Is(err, errChanged) {
		return nil
	}
	return err
}

var errChanged = errors.New("the APIService is another one now")

// condition returns the conditions of a status with the condition of s.
func (a *aggregator) condition(status object.Object, s *state) []any {
	next := object.Object{
		"type": string(apiregistrationv1.Available), "status": string(s.status), "reason": s.reason,
		"message": s.message, "lastTransitionTime": a.host.Now().UTC().Format(timeFormat),
	}
	list, _ := status["conditions"].([]any)
	for i := range list {
		if c, ok := list[i].(object.Object); ok && c["type"] == next["type"] {
			if c["status"] == next["status"] {
				next["lastTransitionTime"] = c["lastTransitionTime"]
			}
			list[i] = next
			return list
		}
	}
	return append(list, next)
}

const timeFormat = "2006-01-02T15:04:05Z"
