package watchcache

import (
	"slices"
	"sync"
	"time"
)

// Index names a way to find the objects of a collection other than by key: by the value of a field or of a label.
type Index struct {
	// Name is comparable; indexes of one collection with the same name have the same Value.
	Name any
	// Value returns the text by which an object is found, "" if by none. It must always return the same for the same
	// entry.
	Value func(*Entry) string
}

// Bounds of a collection's indexes. Each costs about 100 bytes for each object that it finds.
const (
	indexLimit = 16              // the least recently used goes
	indexAge   = 5 * time.Minute // since the last use
	// indexUses is how many searches it takes before an index is built: that costs as much as several searches.
	indexUses = 2
	// indexAbove is how many objects a collection must have: fewer are looked at faster than they are indexed.
	indexAbove = 200
)

// indexes are a collection's indexes, the most recently used last.
//
// They are kept by those who search: an index is a persistent tree of some earlier state, and who wants it for a newer
// one applies the events between, each once. So writers know nothing of indexes, an index costs nothing while nothing
// uses it, and the holder of a snapshot has it with the index of exactly this state.
type indexes struct {
	mu   sync.Mutex // held while an index is built or brought up to date
	list []*indexUse
}

// indexUse is an index in use; its tree is nil until it has been asked for often enough.
type indexUse struct {
	Index
	uses    int
	used    time.Time
	current *index
}

// index is an index of one state of a collection. It is immutable.
type index struct {
	name any
	root *node  // by value, a zero byte, and the entry's key
	next uint64 // of the state, see there
}

// SnapshotBy is Snapshot, with an index if that pays. Find reports whether there is one.
func (c *Collection) SnapshotBy(ix Index) *Snapshot {
	x := &c.indexes
	x.mu.Lock()
	defer x.mu.Unlock()
	s := c.Snapshot() // behind the lock, so that it is not older than the index
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

// WeighBy returns Snapshot.Weigh of the objects whose value by an index is value, if there is the index. It brings none
// up to date and waits for none: the answer may be of a short while ago.
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

// use finds or adds what is known about ix. The caller holds mu.
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

// sweep forgets what is not used. While a search builds an index it leaves that to the next round: it is called by the
// view's goroutine, which waits for no reader.
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

// indexAt returns the index for s, made from the one there is and the events since, or from all objects.
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
			// What is not found was put there under another value: then Value has not kept its promise.
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

// Find is Scan for the objects whose value by the index of this name is value, which is not empty. It does not look at
// others, but for those whose value is the same up to a zero byte, so the caller checks what it gets. false, and
// nothing is called, if the snapshot does not have the index.
func (s *Snapshot) Find(name any, value, namespace, after string, f func(*Entry) bool) bool {
	if s.index == nil || s.index.name != name || value == "" {
		return false
	}
	from, end := indexBounds(value, namespace, after)
	s.index.root.scan(from, end, f)
	return true
}

// indexBounds are bounds among the objects of one value.
func indexBounds(value, namespace, after string) (from, end string) {
	if from, end = bounds(namespace, after); end == "" {
		return indexKey(value, from), value + "\x01"
	}
	return indexKey(value, from), indexKey(value, end)
}
