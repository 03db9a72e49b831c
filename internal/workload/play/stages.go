// Package play runs simulated objects by Stages (package stage). Stages come from files, and from clients if kwok's
// CustomResourceDefinition of Stages is installed.
//
// The current Stages form one immutable set (Stages), which is rebuilt when a Stage is added, deleted or changed. The
// loop (player) chooses a Stage for each object that Stages may run, waits by the cluster's clock until it is due, and
// performs its actions. Without Stages nothing is compiled, and the loop has no keys.
package play

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// set is the Stages at one time. It is immutable.
type set struct {
	lives map[schema.GroupKind]stage.Life
	// replaced are the kinds that are run by Stages alone.
	replaced map[schema.GroupKind]bool
	// refused holds the errors of the Stages that are not in the set, by name.
	refused map[string]error
}

var _ cluster.Stages = (*Stages)(nil)

// Stages holds the Stages of a server. Use New. It is safe for concurrent use.
type Stages struct {
	fixed []*stage.Stage // from files
	now   atomic.Pointer[set]
	// unread is set while changed Stages are not yet compiled.
	unread atomic.Bool

	mu        sync.Mutex
	changed   map[string]*watchcache.Entry // by name; nil for deleted Stages
	objects   map[string]*read             // Stages of clients
	listeners []func()                     // called when the set has changed
}

// read is a Stage that a client has created.
type read struct {
	entry *watchcache.Entry
	spec  string
	stage *stage.Stage // nil if it is not usable
	err   error        // why it is not
}

// New returns Stages with the Stages of files.
func New(fixed []*stage.Stage) *Stages {
	s := &Stages{fixed: fixed, changed: map[string]*watchcache.Entry{}, objects: map[string]*read{}}
	s.now.Store(s.made())
	return s
}

// Replace reports whether objects of a kind are run by Stages alone, and not as the server has it without.
func (s *Stages) Replace(kind schema.GroupKind) bool { return s.current().replaced[kind] }

// OnChange registers f, which is called when the Stages may have changed. f must not block. Call it before the loops
// start.
func (s *Stages) OnChange(f func()) { s.listeners = append(s.listeners, f) }

// observe records a change of a client's Stage. It runs in the view's goroutine.
func (s *Stages) observe(ev *watchcache.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed[ev.Entry.Name] = ev.Entry; ev.Type == watchcache.Deleted {
		s.changed[ev.Entry.Name] = nil
	}
	s.unread.Store(true)
}

// current returns the set of all Stages that the view has shown.
func (s *Stages) current() *set {
	if s.unread.Load() {
		s.compile()
	}
	return s.now.Load()
}

// compile reads the changed Stages, and notifies if the set has changed.
func (s *Stages) compile() {
	if !s.readChanged() {
		return
	}
	for _, notify := range s.listeners {
		notify()
	}
}

// readChanged reads the changed Stages, and reports whether the set has changed.
func (s *Stages) readChanged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	another := false
	for name, e := range s.changed {
		another = s.readLocked(name, e) || another
	}
	clear(s.changed)
	s.unread.Store(false)
	if another {
		s.now.Store(s.made())
	}
	return another
}

// readLocked reads one Stage, nil if it was deleted, and reports whether its meaning has changed.
func (s *Stages) readLocked(name string, e *watchcache.Entry) bool {
	was := s.objects[name]
	if e == nil {
		delete(s.objects, name)
		return was != nil
	}
	spec, _ := e.Field("spec")
	notes, _ := e.Field("metadata.annotations")
	if spec += notes; was != nil && was.spec == spec && was.entry.UID == e.UID {
		was.entry = e // only its status has changed
		return false
	}
	now := &read{entry: e, spec: spec}
	now.stage, now.err = stage.Parse(e.JSON())
	s.objects[name] = now
	return true
}

// made builds the set: the Stages of files, then the Stages of clients, the oldest first. A client's Stage replaces a
// file's Stage of the same name.
func (s *Stages) made() *set {
	var all stage.Life
	for _, one := range s.fixed {
		if s.objects[one.Name] == nil {
			all = append(all, one)
		}
	}
	for _, one := range slices.SortedFunc(maps.Values(s.objects), func(a, b *read) int {
		return cmp.Compare(a.entry.Created, b.entry.Created)
	}) {
		if one.stage != nil {
			all = append(all, one.stage)
		}
	}
	out := &set{replaced: map[schema.GroupKind]bool{}}
	out.lives, out.refused = stage.Lives(all)
	for kind, life := range out.lives {
		out.replaced[kind] = slices.ContainsFunc(life, func(one *stage.Stage) bool { return !one.Additional })
	}
	return out
}

// names returns the names of the clients' Stages.
func (s *Stages) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

// verdict returns a client's Stage and its error; ok is false if there is no Stage of that name.
func (s *Stages) verdict(name string) (e *watchcache.Entry, why error, ok bool) {
	s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.objects[name]
	if one == nil {
		return nil, nil, false
	}
	return one.entry, cmp.Or(one.err, s.now.Load().refused[name]), true
}

// isStage reports whether an event is about a Stage.
func isStage(ev *watchcache.Event) bool { return ev.Collection.Prefix() == stage.Prefix }
