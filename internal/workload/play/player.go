package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// loop is the name of the loop.
const loop = "simulated-stages"

// workers is how many objects are looked at at a time.
const workers = 4

// Part declares the loop that plays Stages.
func Part(s *Stages, shared *cluster.Shared) part.Part {
	return part.Part{Name: "stages", Loops: []part.Loop{
		{Name: loop, Workers: workers, Pooled: true, New: func(h *part.Host) control.Reconciler {
			return cluster.Timed(h, newPlayer(h, s, shared.Addresses()))
		}},
	}}
}

// player plays Stages for objects. A key has one of three forms: the prefix of an object's collection, a bar, and the
// object's key; a bar and the name of a Stage with a status to write; or a bar alone, for all objects.
type player struct {
	*cluster.Cluster
	stages    *Stages
	addresses *cluster.Addresses
	need      func(string)

	mu     sync.Mutex
	jobs   map[string]*job // by object key
	shown  *set            // all objects have been looked at with this set
	logged map[string]bool // failures that are already in the log
}

// job is the Stage chosen for an object in one state. Only the worker that looks at the object uses it.
type job struct {
	of       *set
	uid      string
	revision int64
	stage    *stage.Stage // nil if none matches
	due      time.Time
	acts     []stage.Act // the actions; nil before the Stage is due
	done     int         // number of completed actions
	over     bool
}

func newPlayer(h *part.Host, s *Stages, a *cluster.Addresses) *player {
	return &player{
		Cluster: cluster.Kwok(h), stages: s, addresses: a, jobs: map[string]*job{}, shown: s.now.Load(),
		logged: map[string]bool{},
	}
}

// Requests implements control.Requester.
func (p *player) Requests(need func(string)) {
	p.need = need
	p.stages.OnChange(func() { need("|") })
}

func (p *player) Observe(ev *watchcache.Event, need func(string)) {
	if isStage(ev) {
		p.stages.observe(ev)
		need("|" + ev.Entry.Name)
		return
	}
	prefix := ev.Collection.Prefix()
	unread := p.stages.unread.Load()
	s := p.stages.now.Load()
	if len(s.lives) == 0 && !unread {
		return
	}
	kind := p.kind(prefix)
	if kind == cluster.PodKind {
		p.addressOf(ev)
	}
	if unread || len(s.lives[kind]) > 0 {
		need(prefix + "|" + ev.Entry.Key())
	}
}

// addressOf records the address of a pod.
func (p *player) addressOf(ev *watchcache.Event) {
	if ev.Type == watchcache.Deleted {
		p.addresses.Free(ev.Entry.UID)
		return
	}
	ip, _ := ev.Entry.Field("status.podIP")
	p.addresses.Take(ev.Entry.UID, ip)
}

// kind returns the kind of the objects below a prefix; the zero GroupKind if it is unknown.
func (p *player) kind(prefix string) schema.GroupKind {
	if r := p.Catalog.Snapshot().ByPrefix(prefix); r != nil {
		return schema.GroupKind{Group: r.Group, Kind: r.Kind}
	}
	return schema.GroupKind{}
}

func (p *player) Reconcile(ctx context.Context, key string) error {
	prefix, name, _ := strings.Cut(key, "|")
	switch {
	case prefix == "" && name != "":
		return p.reportStatus(ctx, name)
	case prefix == "":
		p.lookAtAll()
		return nil
	}
	namespace, name := splitKey(name)
	e := p.View.Collection(prefix).Snapshot().Get(namespace, name)
	r := p.Catalog.Snapshot().ByPrefix(prefix)
	s := p.stages.current()
	if e == nil || r == nil || e.Unreadable() != nil || !p.eligible(r, e) {
		p.forget(key)
		return nil
	}
	life := s.lives[schema.GroupKind{Group: r.Group, Kind: r.Kind}]
	if len(life) == 0 {
		p.forget(key)
		return nil
	}
	return p.look(ctx, target{r, e, key}, s, life)
}

func splitKey(key string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		return namespace, name
	}
	return "", key
}

// lookAtAll requests all objects of the kinds that have Stages, if the set of Stages has changed.
func (p *player) lookAtAll() {
	s := p.stages.current()
	p.mu.Lock()
	same := p.shown == s
	p.shown = s
	if !same {
		clear(p.logged)
		clear(p.jobs)
	}
	p.mu.Unlock()
	if same {
		return
	}
	for _, name := range p.stages.names() {
		p.need("|" + name) // whether a Stage is accepted depends on others
	}
	for kind := range s.lives {
		r := p.Catalog.Snapshot().ByKind(kind.Group, kind.Kind)
		if r == nil {
			continue // the CRD is not there yet; its objects come later
		}
		p.View.Collection(r.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			if ip, ok := e.Field("status.podIP"); ok && kind == cluster.PodKind {
				p.addresses.Take(e.UID, ip)
			}
			p.need(r.Prefix + "|" + e.Key())
			return true
		})
	}
}

// eligible reports whether Stages may run an object: a simulated node that is not down, a pod on such a node, or any
// object of another kind.
func (p *player) eligible(r *catalog.Resource, e *watchcache.Entry) bool {
	node := e
	switch (schema.GroupKind{Group: r.Group, Kind: r.Kind}) {
	case cluster.PodKind:
		name, _ := e.Field("spec.nodeName")
		node = p.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", name)
	case cluster.NodeKind:
	default:
		return true
	}
	return cluster.IsSimulated(node) && !cluster.IsDown(node)
}

// target is the object under consideration.
type target struct {
	of    *catalog.Resource
	entry *watchcache.Entry
	key   string
}

func (p *player) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.jobs, key)
}

// look chooses a Stage for the current state of an object, and plays it when it is due.
func (p *player) look(ctx context.Context, t target, s *set, life stage.Life) error {
	p.mu.Lock()
	j := p.jobs[t.key]
	p.mu.Unlock()
	if j == nil || j.of != s || j.uid != t.entry.UID || j.revision != t.entry.Revision {
		j = &job{of: s, uid: t.entry.UID, revision: t.entry.Revision}
		if err := p.choose(ctx, t, j, life); err != nil {
			return err
		}
		p.mu.Lock()
		p.jobs[t.key] = j
		p.mu.Unlock()
	}
	if j.over || j.stage == nil {
		return nil
	}
	if left := j.due.Sub(p.Now()); left > 0 {
		return control.Again(left)
	}
	err := p.play(ctx, t, j)
	if j.over = !passing(err); !j.over {
		return err
	}
	if err != nil {
		p.report(ctx, t, j.stage, err)
	}
	return nil
}

// passing reports whether an error is transient, a problem of the server and not of the request. Such actions are
// retried.
func passing(err error) bool {
	if err == nil {
		return false
	}
	if apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || errors.Is(err, context.Canceled) {
		return true
	}
	var status apierrors.APIStatus
	var failure *stage.Failure
	return !errors.As(err, &status) && !errors.As(err, &failure)
}

// choose chooses a Stage for an object, and the time at which it is due.
func (p *player) choose(ctx context.Context, t target, j *job, life stage.Life) error {
	o, err := p.object(ctx, t, life[0])
	var failure *stage.Failure
	if errors.As(err, &failure) {
		p.log(t, err)
		return nil
	}
	if err != nil {
		return err
	}
	chosen, err := life.Choose(ctx, o, rand.Int64N)
	if err != nil {
		p.log(t, err)
	}
	if chosen == nil {
		return nil
	}
	delay, err := chosen.Delay(ctx, o, rand.Int64N)
	if err != nil {
		p.log(t, &stage.Failure{Stage: chosen, Err: err})
	}
	j.stage, j.due = chosen, p.Now().Add(delay)
	return nil
}

// object returns the object as Stages see it, in the version that they name.
func (p *player) object(ctx context.Context, t target, s *stage.Stage) (*stage.Object, error) {
	data := t.entry.JSON()
	if t.entry.APIVersion != s.Of.GroupVersion().String() {
		v := t.of.Version(s.Of.Version)
		if v == nil || !v.Served {
			return nil, &stage.Failure{
				Stage: s, Err: fmt.Errorf("the server has no %s of %s", s.Of.Kind, s.Of.GroupVersion()),
			}
		}
		obj, err := p.Verbs.Read(ctx, t.of, v, t.entry)
		if err != nil {
			return nil, err
		}
		if data, err = json.Marshal(obj); err != nil {
			return nil, err
		}
	}
	var head struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
			Finalizers  []string          `json:"finalizers"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	return &stage.Object{
		Labels: t.entry.Labels, Annotations: head.Metadata.Annotations, Finalizers: head.Metadata.Finalizers,
		JSON: data, Now: p.Now(),
	}, nil
}
