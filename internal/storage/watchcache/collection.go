package watchcache

import (
	"strings"
	"sync/atomic"
)

// Collection is all objects of one resource, of all namespaces.
type Collection struct {
	prefix string
	view   *View

	state   atomic.Pointer[state]
	history history
	wake    atomic.Pointer[chan struct{}] // closed at the next event; nil if no one has asked since the last one
	pins    pins
	indexes indexes

	parked parked

	// The view's goroutine only:
	tree  tree
	last  int64 // revision of the last event
	dirty bool  // changed, not yet published
}

// state is what readers see of a collection.
type state struct {
	root *node
	last int64  // revision of the last event that it contains
	next uint64 // sequence number of the first event that it does not contain
	// unreadable is how many of the objects are.
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

// Snapshot returns the collection as it is now. It waits for nothing, and nothing waits for it.
func (c *Collection) Snapshot() *Snapshot {
	// The revision first: all events up to it are in the state that is read after it. The state may already hold later
	// events, while the rest of the server does not know them; then it is the state of the last one's revision.
	rev := c.view.Revision()
	s := c.state.Load()
	return &Snapshot{Revision: max(rev, s.last), root: s.root, last: s.last, next: s.next, unreadable: s.unreadable}
}

// History returns how many events there have been since the start, and how many the memory for watches has room for.
func (c *Collection) History() (events uint64, room int) {
	r := c.history.ring.Load()
	return r.next.Load() - 1, len(r.slots)
}

// IsCurrent reports whether the collection has the same objects as a snapshot of it. It costs two loads, and no
// allocation.
func (c *Collection) IsCurrent(s *Snapshot) bool { return c.state.Load().root == s.root }

// Watch returns a watcher of the events after revision from. ErrExpired if some of them are gone.
//
// from may lie in the future: then events up to and including it are not delivered.
func (c *Collection) Watch(from int64) (*Watcher, error) {
	cursor, ok := c.history.seek(from)
	if !ok {
		return nil, ErrExpired
	}
	return &Watcher{c: c, after: from, cursor: cursor, changed: c.signal()}, nil
}

// Changed returns a channel that is closed when something happens in the collection after the call. It is for those who
// look at snapshots; who needs every event has a Watcher.
func (c *Collection) Changed() <-chan struct{} { return c.signal() }

// signal returns the channel that is closed when something happens after the call.
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

// broadcast wakes everybody who holds signal's channel.
func (c *Collection) broadcast() {
	if p := c.wake.Swap(nil); p != nil {
		close(*p)
	}
}

// Snapshot is a collection at one revision. It is immutable.
type Snapshot struct {
	// Revision at which it is true: everything up to it is contained and nothing after it.
	Revision int64
	root     *node
	last     int64
	next     uint64 // 0 if it is not a state that the collection has published
	// unreadable is how many of the objects are.
	unreadable int
	index      *index // by which it can be searched beside the keys; nil for none
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

// Scan calls f for the objects of namespace ("": all) in the order of their keys until f returns false, beginning
// behind the key after ("": at the beginning). It finds the beginning without looking at what lies before.
func (s *Snapshot) Scan(namespace, after string, f func(*Entry) bool) {
	from, end := bounds(namespace, after)
	s.root.scan(from, end, f)
}

// Count returns how many objects Scan would visit. It costs the depth of the tree.
func (s *Snapshot) Count(namespace, after string) int {
	return s.root.between(bounds(namespace, after)).entries
}

// Weigh returns how many objects of namespace ("": all) there are, and how many bytes of JSON they have. It costs the
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

// split divides a key of the store into the prefix of its collection and the rest: the prefix is two segments if the
// first one has a dot and so is a group, or is "services" (kube keeps "services/specs" and "services/endpoints"), else
// one. false if there is no rest, or it is neither name nor namespace/name.
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
