// Package play runs simulated objects by Stages (package stage): those of files, and those that clients create, if the
// server has a definition of them, which is kwok's own.
//
// What Stages are there is one immutable set (Stages), which is made anew when one comes, goes or changes. The loop
// (player) chooses a Stage for each object that Stages may be about, waits until it is due by the cluster's clock, and
// does what it says. Without Stages nothing is compiled, and the loop has no keys.
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
	// replaced are the kinds whose objects are run by Stages alone.
	replaced map[schema.GroupKind]bool
	// refused says why some of the Stages are not among them, by their names.
	refused map[string]error
}

var _ cluster.Stages = (*Stages)(nil)

// Stages are those that a server has. Use New. They are safe for concurrent use.
type Stages struct {
	fixed []*stage.Stage // of files
	now   atomic.Pointer[set]
	// unread is set while there are Stages that have changed and are not compiled.
	unread atomic.Bool

	mu      sync.Mutex
	changed map[string]*watchcache.Entry // by their names; nil for those that are gone
	objects map[string]*read             // what clients have created
	told    []func()                     // are called when the set has changed
}

// read is a Stage that a client has created.
type read struct {
	entry *watchcache.Entry
	spec  string
	stage *stage.Stage // nil if it cannot be used
	err   error        // why
}

// New returns Stages, with those of files.
func New(fixed []*stage.Stage) *Stages {
	s := &Stages{fixed: fixed, changed: map[string]*watchcache.Entry{}, objects: map[string]*read{}}
	s.now.Store(s.made())
	return s
}

// Replace reports whether objects of a kind are run by Stages alone, and not as the server has it without.
func (s *Stages) Replace(kind schema.GroupKind) bool { return s.current().replaced[kind] }

// OnChange has f called when there may be other Stages. f must not block. It is for the start: not while loops run.
func (s *Stages) OnChange(f func()) { s.told = append(s.told, f) }

// observe notes a change of a Stage that a client has made. It is called in the view's goroutine.
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

// compile reads what has changed, and tells of it if that makes another set.
func (s *Stages) compile() {
	if !s.readChanged() {
		return
	}
	for _, tell := range s.told {
		tell()
	}
}

// readChanged takes in what has changed, and reports whether that makes another set.
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

// readLocked takes in one Stage, nil for none, and reports whether that says something else than before.
func (s *Stages) readLocked(name string, e *watchcache.Entry) bool {
	was := s.objects[name]
	if e == nil {
		delete(s.objects, name)
		return was != nil
	}
	spec, _ := e.Field("spec")
	notes, _ := e.Field("metadata.annotations")
	if spec += notes; was != nil && was.spec == spec && was.entry.UID == e.UID {
		was.entry = e // its status has changed
		return false
	}
	now := &read{entry: e, spec: spec}
	now.stage, now.err = stage.Parse(e.JSON())
	s.objects[name] = now
	return true
}

// made puts the Stages together: those of files, then those that clients have created, the oldest first. One that a
// client has created takes the place of one of its name in a file.
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
		out.replaced[kind] = slices.ContainsFunc(life, func(one *stage.Stage) bool { return !one.Beside })
	}
	return out
}

// names returns those of the Stages that clients have created.
func (s *Stages) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

// verdict returns what is to be said of a Stage that a client has created; false if there is none of the name.
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
