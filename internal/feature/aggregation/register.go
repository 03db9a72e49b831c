package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// managedLabel marks APIServices that the server creates, with a value for once at the start or for as long as it runs.
// APIServices without the label belong to users.
const (
	managedLabel   = "kube-aggregator.kubernetes.io/automanaged"
	managedOnStart = "onstart"
	managedAlways  = "true"
)

// registration maintains the APIServices of this server's own groups: of built-in kinds once at the start
// (registerBuiltin), and of CustomResourceDefinitions as long as these exist. Its keys are names of APIServices.
// Source: package autoregister of kube-aggregator 1.36.
type registration struct {
	host *part.Host
	// running is false while the view loads.
	running atomic.Bool
	// labelled are the APIServices with managedLabel, by group; Observe only.
	labelled map[string]map[string]bool

	mu struct {
		sync.Mutex
		// atStart are the APIServices that existed at the start of the server; synced are the ones that have been
		// correct once since then.
		atStart, synced map[string]bool
	}
}

func newRegistration(h *part.Host) *registration {
	r := &registration{host: h, labelled: map[string]map[string]bool{}}
	r.mu.atStart, r.mu.synced = map[string]bool{}, map[string]bool{}
	return r
}

// Observe implements control.Reconciler.
func (r *registration) Observe(ev *watchcache.Event, need func(string)) {
	name := ev.Entry.Name
	switch ev.Collection.Prefix() {
	case ref.APIServices.Prefix:
		r.observeService(ev)
		need(name)
	case control.DefinitionsPrefix:
		_, group, _ := strings.Cut(name, ".")
		if g := r.host.Catalog.Snapshot().Group(group); g != nil {
			for _, v := range g.Versions {
				need(v.Name + "." + group)
			}
		}
		for service := range r.labelled[group] {
			need(service)
		}
	}
}

// Pauses between attempts to register built-in kinds.
const (
	builtinRetryFirst = 50 * time.Millisecond
	builtinRetryMost  = 5 * time.Second
)

// registerBuiltin creates or updates the APIServices of built-in kinds once, and deletes obsolete ones of an earlier
// start. Each replica does it, not only the leader: the leader may have another version or another --runtime-config,
// and does not know the groups of this one.
func (r *registration) registerBuiltin(ctx context.Context) error {
	names := builtin(r.host.Catalog.Snapshot())
	r.host.View.Collection(ref.APIServices.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if e.Labels[managedLabel] == managedOnStart && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
		return true
	})
	for pause := builtinRetryFirst; len(names) > 0; pause = min(2*pause, builtinRetryMost) {
		names = slices.DeleteFunc(names, func(name string) bool {
			err := r.Reconcile(ctx, name)
			if err != nil && ctx.Err() == nil {
				r.host.Log.Warn("an APIService of built-in kinds cannot be registered; retried",
					"apiService", name, "error", err)
			}
			return err == nil
		})
		if len(names) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
	return nil
}

func (r *registration) observeService(ev *watchcache.Event) {
	name := ev.Entry.Name
	_, group, _ := strings.Cut(name, ".")
	delete(r.labelled[group], name)
	if ev.Type != watchcache.Deleted && ev.Entry.Labels[managedLabel] != "" {
		if r.labelled[group] == nil {
			r.labelled[group] = map[string]bool{}
		}
		r.labelled[group][name] = true
	}
	if len(r.labelled[group]) == 0 {
		delete(r.labelled, group)
	}
	if !r.running.Load() {
		r.mu.Lock()
		r.mu.atStart[name] = true
		r.mu.Unlock()
	}
}

// builtin returns the names of the APIServices of built-in kinds.
func builtin(snap *catalog.Snapshot) (names []string) {
	for _, g := range snap.Groups() {
		for _, gv := range g.Versions {
			name := gv.Name + "." + g.Name
			if d := wanted(snap, name); d != nil && d.managed == managedOnStart {
				names = append(names, name)
			}
		}
	}
	return names
}

// desired is the desired state of an APIService of this server.
type desired struct {
	spec    apiregistrationv1.APIServiceSpec
	managed string
}

// wanted returns the desired state of the APIService of a name, or nil if there should be none.
func wanted(snap *catalog.Snapshot, name string) *desired {
	version, group, _ := strings.Cut(name, ".")
	g := snap.Group(group)
	if g == nil || group == apiregistrationv1.GroupName || g.Version(version) == nil {
		return nil
	}
	d := &desired{managed: managedAlways, spec: apiregistrationv1.APIServiceSpec{
		Group: group, Version: version,
		GroupPriorityMinimum: customGroupPriority, VersionPriority: customVersionPriority,
	}}
	resources := slices.Concat(g.Version(version).Resources, g.Version(version).Shadowed)
	for i, r := range resources {
		if r.Custom() {
			continue
		}
		if d.managed != managedOnStart {
			d.managed, d.spec.GroupPriorityMinimum, d.spec.VersionPriority = managedOnStart, 0, 0
		}
		d.spec.GroupPriorityMinimum = max(d.spec.GroupPriorityMinimum, int32(r.GroupPriority))
		d.spec.VersionPriority = max(d.spec.VersionPriority, int32(resources[i].Version(version).Priority))
	}
	if len(resources) == 0 || d.spec.GroupPriorityMinimum == 0 || d.spec.VersionPriority == 0 {
		return nil
	}
	return d
}

// Values of the APIServices of CustomResourceDefinitions.
const (
	customGroupPriority   = 1000
	customVersionPriority = 100
)

// Reconcile implements control.Reconciler.
func (r *registration) Reconcile(ctx context.Context, name string) error {
	want := wanted(r.host.Catalog.Snapshot(), name)
	have := r.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", name)
	r.mu.Lock()
	synced, atStart := r.mu.synced[name], r.mu.atStart[name]
	r.mu.Unlock()
	var err error
	switch step(want, have, synced, atStart) {
	case create:
		err = r.create(ctx, name, want)
	case update:
		err = r.update(ctx, have, want)
	case remove:
		if r.host.View.Collection(control.DefinitionsPrefix).Snapshot().Unreadable() > 0 {
			return control.Again(rereadEvery) // its definition may be the unreadable one
		}
		err = r.remove(ctx, have)
	}
	if err != nil {
		return fmt.Errorf("APIService %s: %w", name, err)
	}
	r.mu.Lock()
	r.mu.synced[name] = true
	if want == nil && have == nil {
		delete(r.mu.synced, name) // names of definitions come and go
	}
	r.mu.Unlock()
	return nil
}

// rereadEvery is the least time that an unknown APIService stays while some definitions are unreadable.
const rereadEvery = time.Second

// action is the next action for an APIService.
type action int

const (
	nothing action = iota
	create
	update
	remove
)

// step returns the next action. want is nil if the server has no such version, have if there is no such APIService.
func step(want *desired, have *watchcache.Entry, synced, atStart bool) action {
	managed := ""
	if have != nil {
		managed = have.Labels[managedLabel]
	}
	switch {
	case want == nil && have == nil, want != nil && want.managed == managedOnStart && synced:
		return nothing
	case have == nil:
		return create
	case managed != managedOnStart && managed != managedAlways, managed == managedOnStart && (!atStart || synced):
		return nothing
	case want == nil:
		return remove
	}
	return update
}

func (r *registration) call(name string) (*verb.Call, error) {
	return r.host.Verbs.Call(Resource, "", name, verb.ServerUser())
}

// manager is the field manager of these APIServices.
const manager = "kube-apiserver"

func (r *registration) create(ctx context.Context, name string, want *desired) error {
	call, err := r.call(name)
	if err != nil {
		return err
	}
	obj, err := r.host.Verbs.New(call, object.Object{
		"metadata": object.Object{"name": name, "labels": object.Object{managedLabel: want.managed}},
		"spec":     want.object(),
	})
	if err == nil {
		_, err = r.host.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
	}
	return control.IgnoreExists(err)
}

// object returns the spec as JSON has it.
func (d *desired) object() object.Object {
	spec := object.Object{
		"version": d.spec.Version, "groupPriorityMinimum": int64(d.spec.GroupPriorityMinimum),
		"versionPriority": int64(d.spec.VersionPriority),
	}
	if d.spec.Group != "" {
		spec["group"] = d.spec.Group
	}
	return spec
}

func (r *registration) update(ctx context.Context, have *watchcache.Entry, want *desired) error {
	var service apiregistrationv1.APIService
	if err := json.Unmarshal(have.JSON(), &service); err != nil {
		return err
	}
	s := service.Spec
	if s.Service == nil && s.Group == want.spec.Group && s.Version == want.spec.Version &&
		s.GroupPriorityMinimum == want.spec.GroupPriorityMinimum && s.VersionPriority == want.spec.VersionPriority {
		return nil
	}
	call, err := r.call(have.Name)
	if err != nil {
		return err
	}
	_, err = r.host.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			obj["spec"] = want.object()
			return r.host.Verbs.New(call, obj)
		})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its event requeues it
	}
	return err
}

func (r *registration) remove(ctx context.Context, have *watchcache.Entry) error {
	call, err := r.call(have.Name)
	if err != nil {
		return err
	}
	uid := types.UID(have.UID)
	_, err = r.host.Verbs.Delete(ctx, call, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// missing returns the names of the built-in APIServices that have not existed since the start of the server.
func (r *registration) missing() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range builtin(r.host.Catalog.Snapshot()) {
		if !r.mu.synced[name] && r.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", name) == nil {
			names = append(names, name)
		}
	}
	return names
}
