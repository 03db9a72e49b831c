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

// aggregator knows the APIServices for which other servers answer, sends requests there, and finds out how they are.
type aggregator struct {
	host     *part.Host
	settings Settings
	resolver webhook.Resolver
	proxy    *httputil.ReverseProxy
	keep     *keeper
	metrics  *metrics
	// certificates counts servers whose certificates clients of today do not believe.
	certificates *webhook.Certificates
	// onCreate is called with the path of a resource in which a client has created an object; nil if none is to hear.
	onCreate func(path string)

	// table is what requests go by; nil if this server answers for everything.
	table atomic.Pointer[table]
	// queue has the names of the APIServices that are to be checked; documents those whose documents are to be read.
	queue, documents workqueue.TypedDelayingInterface[string]
	// begun is closed when there is something to do for the first time.
	begun chan struct{}
	begin func()

	mu struct {
		sync.Mutex
		remotes  map[string]*remote
		backends map[backendKey]*backend
		// local are the APIServices of this server whose priorities are not those that its resources have.
		local map[string]*catalog.Service
	}
}

// table says which versions of groups other servers answer for. It is never changed.
type table map[catalog.GroupVersionName]*remote

func newAggregator(h *part.Host, s Settings) *aggregator {
	a := &aggregator{
		host: h, settings: s, resolver: webhook.Resolver{Catalog: h.Catalog, View: h.View}, begun: make(chan struct{}),
		queue: workqueue.NewTypedDelayingQueue[string](), documents: workqueue.NewTypedDelayingQueue[string](),
		keep: newKeeper(h.Dir), metrics: newMetrics(),
		certificates: webhook.NewCertificates("apiserver_kube_aggregator"),
	}
	a.begin = sync.OnceFunc(func() { close(a.begun) })
	a.proxy = a.newProxy()
	a.mu.remotes, a.mu.backends = map[string]*remote{}, map[backendKey]*backend{}
	a.mu.local = map[string]*catalog.Service{}
	h.View.Subscribe(a.observe)
	return a
}

// elsewhere returns what answers a request for which another server is there, nil for all others.
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

// versionOf returns what the path of a version's resources names: /apis/<group>/<version>, or /api/<version>.
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

// observe hears of every change, in the view's goroutine.
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

// observeService notes what an APIService says now, and reports whether that may change what is served.
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
			a.need(name) // to forget its documents
		}
		return old != nil || local || a.mu.local[name] != nil
	}
	delete(a.mu.local, name)
	r := a.newRemoteLocked(ev.Entry, s)
	if old != nil && old.uid == r.uid && equal(&old.spec, &r.spec) {
		return false // its status has changed, or its metadata
	}
	if old != nil && old.uid == r.uid {
		r.documents.Store(old.documents.Load())
	}
	a.mu.remotes[name] = r
	a.need(name)
	return true
}

// observeLocalLocked notes an APIService for which this server answers.
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

// need asks for a check.
func (a *aggregator) need(name string) {
	a.begin()
	a.queue.Add(name)
}

func equal(a, b *apiregistrationv1.APIServiceSpec) bool {
	return a.Group == b.Group && a.Version == b.Version && a.GroupPriorityMinimum == b.GroupPriorityMinimum &&
		a.VersionPriority == b.VersionPriority && *a.Service.Port == *b.Service.Port && keyOf(a) == keyOf(b)
}

// newRemoteLocked returns what an APIService says, with the connections that there are to its service.
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
	r.handle = a.handler(r)
	return r
}

func (a *aggregator) certificate() *tls.Certificate {
	if a.host.Certificates == nil {
		return nil
	}
	return a.host.Certificates.ProxyClient()
}

// publishLocked makes what is known the table of requests and a part of what is published.
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
	// What is routed elsewhere must be so before it is published, and the other way round.
	if len(next) > 0 {
		a.table.Store(&next)
	}
	a.host.Catalog.SetServices(services)
	if len(next) == 0 {
		a.table.Store(nil)
	}
}

// describe makes r.service what is known of r, another one only if it has changed.
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

// How many servers are asked at the same time: so many that those that do not answer, each of which takes seconds, do
// not keep the others waiting.
const (
	checkers = 64
	readers  = 8 // of documents, which may be long
)

// run checks, as long as there is something to check, until ctx ends.
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

// dispatch takes names from a queue until it is shut down, and calls f for up to n of them at the same time.
func dispatch(ctx context.Context, queue workqueue.TypedInterface[string], n int, f func(context.Context, string)) {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, n) // each call that runs has one
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

// reconcile checks an APIService and notes how it is.
func (a *aggregator) reconcile(ctx context.Context, name string) {
	r := a.find(name)
	if r == nil {
		a.forget(ctx, name)
		return
	}
	now := a.host.Now()
	s, listed := a.check(ctx, r)
	if ctx.Err() != nil {
		return
	}
	s.at = now
	was := r.state.Load()
	r.set(s)
	if s.available() || s.answered { // those who wait for the condition find it in discovery
		a.learn(ctx, r, listed)
	}
	r.backend.rest()
	if was.available() != s.available() {
		a.host.Log.Info("an aggregated API is available or not", "apiService", name, "available", s.available(),
			"reason", s.reason, "message", s.message)
	}
	a.mu.Lock()
	if a.mu.remotes[name] == r {
		a.publishLocked()
	}
	a.mu.Unlock()
	a.metrics.set(name, s)
	if err := a.report(ctx, name, s); err != nil && ctx.Err() == nil {
		a.host.Log.Info("the status of an APIService cannot be written; it is tried again after the next check",
			"apiService", name, "error", err)
	}
	if s.available() {
		a.documents.Add(name)
	}
	a.queue.AddAfter(name, r.pause())
}

// forget ends what is known of an APIService for which no other server answers any more.
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

// report writes the condition, if it says something else.
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
	call.Subresource = "status"
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

// condition returns the conditions of a status with what s says.
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
