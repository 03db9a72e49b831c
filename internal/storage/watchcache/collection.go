package watchcache

import (
	"strings"
	"sync/atomic"
)

// Collection holds all objects of one resource, in all namespaces.
type Collection struct {
	prefix string
	view   *View

	state   atomic.Pointer[state]
	history history
	wake    atomic.Pointer[chan struct{}] // closed at the next event; nil if not requested since the last one
	pins    pins
	indexes indexes

	parked parked
	wakers wakers

	// The view's goroutine only:
	tree  tree
	last  int64 // revision of the last event
	dirty bool  // changed, not yet published
}

// state is the published state of a collection.
type state struct {
	root *node
	last int64  // revision of the last event included
	next uint64 // sequence number of the first event not included
	// unreadable is the number of unreadable objects.
	unreadable int
}

func newCollection(v *View, prefix string) *Collection {
	c := &Collection{prefix: prefix, view: v}
	c.state.Store(&state{})
	c.history.ring.Store(newRing(0, 1))
	return c
}

// Prefix returns the key prefix of the collection, without slashes at the ends: "stable.example.com/crontabs".
func (c *Collection) Prefix() string { return c.prefix }

// Snapshot returns the current state of the collection, without blocking or being blocked.
func (c *Collection) Snapshot() *Snapshot {
	// Load the revision first: the state loaded afterwards includes all events up to it. The state may also include
	// later events that are not visible elsewhere yet; then its own last revision applies.
	rev := c.view.Revision()
	s := c.state.Load()
	return &Snapshot{Revision: max(rev, s.last), root: s.root, last: s.last, next: s.next, unreadable: s.unreadable}
}

// History returns the number of events since the start, and the capacity of the history in events.
func (c *Collection) History() (events uint64, room int) {
	r := c.history.ring.Load()
	return r.next.Load() - 1, len(r.slots)
}

// IsCurrent reports whether the collection still has the objects of a snapshot. It costs two loads and no allocation.
func (c *Collection) IsCurrent(s *Snapshot) bool { return c.state.Load().root == s.root }

// Watch returns a watcher of the events after revision from. It returns ErrExpired if some of them are gone.
//
// from may lie in the future: then events up to and including it are not delivered.
func (c *Collection) Watch(from int64) (*Watcher, error) {
	cursor, ok := c.history.seek(from)
	if !ok {
		return nil, ErrExpired
	}
	return &Watcher{c: c, after: from, cursor: cursor, changed: c.signal()}, nil
}

// Changed returns a channel that is closed at the next event in the collection. It serves readers of snapshots; a
// Watcher delivers every event.
func (c *Collection) Changed() <-chan struct{} { return c.signal() }

// signal returns a channel that is closed at the next event.
func (c *Collection) signal() chan struct{} {
	for {
		if p := c.wake.Load(); p != nil {
			return *p
		}
		fresh := make(chan struct{})
		if c.wake.CompareAndSwap(nil, &fresh) {
			return fresh
		}
	}
}

// broadcast closes signal's channel.
func (c *Collection) broadcast() {
	if p := c.wake.Swap(nil); p != nil {
		close(*p)
	}
}

// Snapshot is a collection at one revision. It is immutable.
type Snapshot struct {
	// Revision is the revision of the snapshot: it includes all changes up to this revision and none after it.
	Revision int64
	root     *node
	last     int64
	next     uint64 // 0 if the collection has not published this state
	// unreadable is the number of unreadable objects.
	unreadable int
	index      *index // additional search index; nil for none
}

// Same reports whether two snapshots of one collection hold the same objects. It compares two pointers.
func (s *Snapshot) Same(other *Snapshot) bool { return s.root == other.root }

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.root.len() }

// Get returns an object, or nil. namespace is "" for a cluster-wide object.
func (s *Snapshot) Get(namespace, name string) *Entry {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return s.root.get(name)
}

// Scan calls f for the objects of namespace ("" means all) in key order until f returns false. It starts behind the key
// after ("" means the first key), without visiting earlier objects.
func (s *Snapshot) Scan(namespace, after string, f func(*Entry) bool) {
	from, end := bounds(namespace, after)
	s.root.scan(from, end, f)
}

// Count returns how many objects Scan would visit. It costs the depth of the tree.
func (s *Snapshot) Count(namespace, after string) int {
	return s.root.between(bounds(namespace, after)).entries
}

// Weigh returns the number of objects in namespace ("" means all) and the size of their JSON in bytes. Its cost is the
// depth of the tree.
func (s *Snapshot) Weigh(namespace string) (objects, bytes int) {
	w := s.root.between(bounds(namespace, ""))
	return w.entries, w.bytes
}

// bounds returns the first key (inclusive) and the end (exclusive, "" for none).
func bounds(namespace, after string) (from, end string) {
	if namespace != "" {
		from, end = namespace+"/", namespace+"0" // '0' follows '/'
	}
	if after != "" {
		from = max(from, after+"\x00")
	}
	return from, end
}

// split splits a key of the store into its collection's prefix and the rest. The prefix has two segments if the first
// one has a dot, and so is a group, or is "services" (Kubernetes has "services/specs" and "services/endpoints");
// otherwise it has one. ok is false if the rest is empty, or is neither name nor namespace/name.
func split(key string) (prefix, rest string, ok bool) {
	i := strings.IndexByte(key, '/')
	if i <= 0 {
		return "", "", false
	}
	if strings.IndexByte(key[:i], '.') >= 0 || key[:i] == "services" {
		j := strings.IndexByte(key[i+1:], '/')
		if j <= 0 {
			return "", "", false
		}
		i += 1 + j
	}
	prefix, rest = key[:i], key[i+1:]
	namespace, name, namespaced := strings.Cut(rest, "/")
	if namespace == "" || namespaced && (name == "" || strings.IndexByte(name, '/') >= 0) {
		return "", "", false
	}
	return prefix, rest, true
}
