package watchcache

import (
	"slices"
	"sync"
	"time"
)

// Index names a way to find the objects of a collection other than by key: by the value of a field or of a label.
type Index struct {
	// Name identifies the index and is comparable; indexes of one collection with the same name have the same Value.
	Name any
	// Value returns the index value of an object, "" to exclude it. It must be a pure function of the entry.
	Value func(*Entry) string
}

// Bounds of a collection's indexes. Each costs about 100 bytes for each object that it finds.
const (
	indexLimit = 16              // the least recently used index is dropped
	indexAge   = 5 * time.Minute // since the last use
	// indexUses is the number of searches before an index is built, because building costs as much as several searches.
	indexUses = 2
	// indexAbove is the minimum size of a collection with an index: a scan of fewer objects is faster.
	indexAbove = 200
)

// indexes holds a collection's indexes, the most recently used last.
//
// Readers maintain them: an index is a persistent tree of an earlier state, and a reader that needs a newer one applies
// the events in between. So writers do not maintain indexes, an unused index costs nothing, and a snapshot comes with
// the index of exactly its state.
type indexes struct {
	mu   sync.Mutex // held while an index is built or updated
	list []*indexUse
}

// indexUse tracks the use of an index; current is nil until it has been used often enough.
type indexUse struct {
	Index
	uses    int
	used    time.Time
	current *index
}

// index is an index of one state of a collection. It is immutable.
type index struct {
	name any
	root *node  // keys are the value, a zero byte, and the entry's key
	next uint64 // as in state
}

// SnapshotBy is Snapshot with an index, if that pays. Find reports whether the index exists.
func (c *Collection) SnapshotBy(ix Index) *Snapshot {
	x := &c.indexes
	x.mu.Lock()
	defer x.mu.Unlock()
	s := c.Snapshot() // after taking the lock, so that it is not older than the index
	if s.Len() < indexAbove {
		return s
	}
	use := x.use(ix, c.view.now())
	if use.uses < indexUses {
		return s
	}
	use.current = c.indexAt(s, use)
	s.index = use.current
	return s
}

// WeighBy returns Snapshot.Weigh for the objects with the given index value, if the index exists. It neither updates
// the index nor waits for it, so the result may be slightly outdated.
func (c *Collection) WeighBy(name any, value, namespace string) (objects, bytes int, ok bool) {
	if !c.indexes.mu.TryLock() {
		return 0, 0, false
	}
	defer c.indexes.mu.Unlock()
	at := slices.IndexFunc(c.indexes.list, func(u *indexUse) bool { return u.Name == name })
	if at < 0 || c.indexes.list[at].current == nil {
		return 0, 0, false
	}
	w := c.indexes.list[at].current.root.between(indexBounds(value, namespace, ""))
	return w.entries, w.bytes, true
}

// use returns the indexUse of ix, adding it if necessary. The caller holds mu.
func (x *indexes) use(ix Index, now time.Time) *indexUse {
	at := slices.IndexFunc(x.list, func(u *indexUse) bool { return u.Name == ix.Name })
	var u *indexUse
	if at >= 0 {
		u = x.list[at]
		x.list = slices.Delete(x.list, at, at+1)
	} else {
		u = &indexUse{Index: ix}
		if len(x.list) >= indexLimit {
			x.list = slices.Delete(x.list, 0, 1)
		}
	}
	x.list = append(x.list, u)
	u.uses++
	u.used = now
	return u
}

// sweep drops unused indexes. It skips the round while a search builds an index, because the view's goroutine calls it
// and must not wait for readers.
func (x *indexes) sweep(now time.Time) {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	x.list = slices.DeleteFunc(x.list, func(u *indexUse) bool { return now.Sub(u.used) > indexAge })
	if len(x.list) == 0 {
		x.list = nil
	}
}

// indexAt returns the index for s, built from the current one and later events, or from all objects.
func (c *Collection) indexAt(s *Snapshot, u *indexUse) *index {
	old := u.current
	if old != nil && old.next == s.next {
		return old
	}
	out := &index{name: u.Name, next: s.next}
	if old != nil && s.next-old.next <= uint64(s.Len()/4) {
		if root, ok := c.catchUp(old, s.next, u.Value); ok {
			out.root = root
			return out
		}
	}
	var t tree
	s.root.scan("", "", func(e *Entry) bool {
		if v := u.Value(e); v != "" {
			t.put(indexKey(v, e.key), e)
		}
		return true
	})
	out.root = t.freeze()
	return out
}

// catchUp applies the events from old to next. false if some are gone.
func (c *Collection) catchUp(old *index, next uint64, value func(*Entry) string) (*node, bool) {
	r := c.history.ring.Load()
	t := tree{root: old.root}
	for n := old.next; n < next; n++ {
		e := r.at(n)
		if e == nil {
			return nil, false
		}
		if e.Prev != nil {
			// If the key is missing, it was inserted under another value: Value is not a pure function.
			if v := value(e.Prev); v != "" && t.remove(indexKey(v, e.Prev.key)) == nil {
				return nil, false
			}
		}
		if e.Type != Deleted {
			if v := value(e.Entry); v != "" {
				t.put(indexKey(v, e.Entry.key), e.Entry)
			}
		}
	}
	return t.freeze(), true
}

func indexKey(value, key string) string { return value + "\x00" + key }

// Find is Scan for the objects with the given value in the named index; value is not empty. It may also visit objects
// with an equal value up to a zero byte, so the caller must check. If the snapshot lacks the index, it calls nothing
// and returns false.
func (s *Snapshot) Find(name any, value, namespace, after string, f func(*Entry) bool) bool {
	if s.index == nil || s.index.name != name || value == "" {
		return false
	}
	from, end := indexBounds(value, namespace, after)
	s.index.root.scan(from, end, f)
	return true
}

// indexBounds is bounds within the objects of one value.
func indexBounds(value, namespace, after string) (from, end string) {
	if from, end = bounds(namespace, after); end == "" {
		return indexKey(value, from), value + "\x01"
	}
	return indexKey(value, from), indexKey(value, end)
}
