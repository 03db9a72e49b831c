// Package source caches the compiled form of configuration objects: policies, bindings, webhooks.
//
// It stands between the admission plugins and the view. A Source compiles each object of one kind once for each of its
// revisions and returns all of them as a List, in the order of their names. A List is immutable and stays the same
// until something changes, so derived values can be cached with it. There is no informer and no goroutine: a Source
// reads the view's snapshot, a comparison of pointers while nothing has changed, and so is as current as the view.
//
// A Source is safe for concurrent use.
package source

import (
	"sync"
	"sync/atomic"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Source keeps the objects of one collection as values of type T.
type Source[T any] struct {
	collection *watchcache.Collection
	compile    func(*watchcache.Entry) (T, bool)

	current atomic.Pointer[List[T]]
	mu      sync.Mutex // held while a list is built
}

// List holds all objects at one moment. A nil *List has none.
type List[T any] struct {
	Items []T // in the order of their names; read only

	snapshot *watchcache.Snapshot
	made     map[*watchcache.Entry]result[T]
}

func (l *List[T]) items() []T {
	if l == nil {
		return nil
	}
	return l.Items
}

type result[T any] struct {
	item T
	ok   bool
}

// New returns a source of the collection's objects. compile is called once for each revision of an object; it should be
// fast, and objects for which it returns false are left out.
func New[T any](collection *watchcache.Collection, compile func(*watchcache.Entry) (T, bool)) *Source[T] {
	return &Source[T]{collection: collection, compile: compile}
}

// Fixed returns a list of items that are not in a view.
func Fixed[T any](items []T) *List[T] { return &List[T]{Items: items} }

// List returns the current objects in the view.
func (s *Source[T]) List() *List[T] {
	if l := s.current.Load(); l != nil && s.collection.IsCurrent(l.snapshot) {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.collection.Snapshot()
	old := s.current.Load()
	if old != nil && old.snapshot.Same(now) { // built meanwhile
		return old
	}
	next := &List[T]{snapshot: now, made: make(map[*watchcache.Entry]result[T], now.Len())}
	now.Scan("", "", func(e *watchcache.Entry) bool {
		r, known := result[T]{}, false
		if old != nil {
			r, known = old.made[e]
		}
		if !known && e.Unreadable() != nil {
			if last := e.LastReadable(); last != nil {
				r.item, r.ok = s.compile(last)
			}
		} else if !known {
			r.item, r.ok = s.compile(e)
		}
		next.made[e] = r
		if r.ok {
			next.Items = append(next.Items, r.item)
		}
		return true
	})
	s.current.Store(next)
	return next
}

// Derived caches a value derived from a list until the list changes. The zero value is ready to use.
type Derived[A, T any] struct {
	current atomic.Pointer[derived[A, T]]
}

type derived[A, T any] struct {
	a   *List[A]
	val T
}

// Get returns derive's result for the list. Concurrent callers may each call derive after a change.
func (d *Derived[A, T]) Get(a *List[A], derive func([]A) T) T {
	if c := d.current.Load(); c != nil && c.a == a {
		return c.val
	}
	c := &derived[A, T]{a, derive(a.items())}
	d.current.Store(c)
	return c.val
}

// Joined caches a value derived from two lists until one of them changes. The zero value is ready to use.
type Joined[A, B, T any] struct {
	current atomic.Pointer[joined[A, B, T]]
}

type joined[A, B, T any] struct {
	a   *List[A]
	b   *List[B]
	val T
}

// Get returns derive's result for the lists. Concurrent callers may each call derive after a change.
func (j *Joined[A, B, T]) Get(a *List[A], b *List[B], derive func([]A, []B) T) T {
	if c := j.current.Load(); c != nil && c.a == a && c.b == b {
		return c.val
	}
	c := &joined[A, B, T]{a: a, b: b, val: derive(a.items(), b.items())}
	j.current.Store(c)
	return c.val
}
