// Package watchcache is the view: the contents of the store, in memory, in the order of revisions.
//
// It stands between the store and all reads. One goroutine follows the store's single watch. Lists, gets, watches,
// discovery and controllers read the resulting state; they never wait for that goroutine or block it.
//
// Main types: View is the whole store; Collection one resource; Snapshot a collection at one revision; Entry an object
// with its served bytes; Event and Watcher represent changes.
//
// Invariants:
//   - Everything that a reader can hold (Entry, Event, Snapshot) is immutable.
//   - View.Revision never goes back and is complete: every event up to it is in its collection and its history, and
//     every subscriber has received it.
//   - A watcher delivers each event once, in order, without a gap, or ends with ErrExpired.
//   - Memory is bounded by the objects: histories are bounded, and retained snapshots share all unchanged parts.
//
// Concurrency: all methods are safe for concurrent use, except those of Watcher, which belongs to one goroutine.
// Readers take no lock on snapshots and histories; they synchronise with the view's goroutine through atomic pointers
// only.
package watchcache

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Options of a view; the zero value will do.
type Options struct {
	// Log receives reports about stored values that are not objects; nil means slog.Default().
	Log *slog.Logger
	// Now is the clock for the age of histories; nil means time.Now.
	Now func() time.Time
	// Pack lists the prefixes of collections with large objects, kept compressed while no request reads them.
	Pack []string
	// Alike lists the prefixes of collections of many small, similar objects, kept compressed against each other while
	// no request reads them.
	Alike []string
	// Read decodes a value stored below a collection's prefix to JSON, and returns its encoding. The JSON may be the
	// value itself. Nil means that all values are JSON. Several goroutines call it at a time.
	Read func(prefix string, value []byte) (Decoded, error)
	// Decrypt decrypts the value of a key for Read. The result may be the value itself. Nil means that nothing is
	// encrypted. Several goroutines call it at a time.
	Decrypt func(prefix, key string, value []byte) ([]byte, error)
	// Foreign reports whether the values below a prefix are not served objects: the view skips unreadable ones. Nil
	// means that all are objects.
	Foreign func(prefix string) bool
}

// View is the store's content in memory.
type View struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time

	read    func(prefix string, value []byte) (Decoded, error)
	decrypt func(prefix, key string, value []byte) ([]byte, error)
	foreign func(prefix string) bool

	revision    atomic.Int64
	start       atomic.Int64 // revision of the last list, the start of every history
	collections sync.Map     // prefix -> *Collection
	waiters     waiters
	notifier    notifier
	compressor  *compressor
	subscribers []func([]*Event)
	plays       chan func() // functions for the view's goroutine to run between two batches, see Replay

	// Fields of the view's goroutine:
	in     *interner
	dirty  []*Collection
	events []*Event
}

// New returns an empty view of s. Call Subscribe, Load and Run next, in this order.
func New(s *store.Store, o Options) *View {
	v := &View{
		store: s, log: o.Log, now: o.Now, read: o.Read, decrypt: o.Decrypt, foreign: o.Foreign,
		plays: make(chan func()), in: newInterner(),
	}
	if v.log == nil {
		v.log = slog.Default()
	}
	if v.now == nil {
		v.now = time.Now
	}
	v.compressor = newCompressor(o.Pack, o.Alike)
	v.notifier.kick = make(chan struct{}, 1) // one suffices: the notifier handles the whole list
	return v
}

// Subscribe registers f for every event. The view's goroutine calls f in revision order, after the collections hold the
// events and before Revision includes them. So after waiting for a revision, f has received it. During Load, f receives
// all objects as Added events, sorted by key. f must not keep the slice, and blocks the view while it runs.
//
// Call it before Load.
func (v *View) Subscribe(f func([]*Event)) { v.subscribers = append(v.subscribers, f) }

// Revision returns the revision up to which the view is complete; 0 before Load has returned.
func (v *View) Revision() int64 { return v.revision.Load() }

// Start returns the revision at which the view last read the whole store. Earlier changes are unknown.
func (v *View) Start() int64 { return v.start.Load() }

// Collection returns the collection of the objects under prefix ("stable.example.com/crontabs"); it may be empty.
func (v *View) Collection(prefix string) *Collection {
	if c, ok := v.collections.Load(prefix); ok {
		return c.(*Collection)
	}
	fresh := newCollection(v, strings.Clone(prefix))
	found, _ := v.collections.LoadOrStore(fresh.prefix, fresh)
	c := found.(*Collection)
	// Read the start after the collection can be found: a concurrent list either finds the collection, or has already
	// published its revision.
	c.history.raise(v.start.Load())
	return c
}

// Collections returns all collections that were requested or have had objects, sorted by prefix.
func (v *View) Collections() []*Collection {
	var all []*Collection
	v.collections.Range(func(_, c any) bool {
		all = append(all, c.(*Collection))
		return true
	})
	slices.SortFunc(all, func(a, b *Collection) int { return cmp.Compare(a.prefix, b.prefix) })
	return all
}

// sweepInterval is the interval for dropping old history.
const sweepInterval = 10 * time.Second

// Run follows the store until ctx ends, then returns nil. If the store's history is gone before it could be read (after
// a long time without connection) it lists everything again; watchers then end with ErrExpired, and subscribers receive
// the differences. It returns an error if the store is closed or broken.
func (v *View) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { v.notifier.run(ctx) })
	wg.Go(func() { v.compressor.run(ctx) })
	wg.Go(func() { v.healEvery(ctx) })
	defer wg.Wait()
	defer cancel()
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		lost, err := v.follow(ctx, sweep.C)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !lost {
			continue
		}
		v.log.Warn("the store's history is gone; listing everything again", "revision", v.Revision())
		if err := v.list(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			v.log.Warn("list of the store failed; retried", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// follow applies the changes from the store's watch. lost is true if the store's history is gone.
func (v *View) follow(ctx context.Context, sweep <-chan time.Time) (lost bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := v.store.Watch(ctx, v.Revision()+1)
	for {
		select {
		case b, ok := <-batches:
			switch {
			case !ok && ctx.Err() == nil:
				return false, store.ErrClosed
			case !ok:
				return false, nil
			case b.Err == store.ErrCompacted:
				return true, nil
			case b.Err != nil:
				return false, b.Err
			}
			v.apply(b)
		case <-sweep:
			v.sweep()
		case play := <-v.plays:
			play()
		}
	}
}

// apply publishes a batch: to the collections, the subscribers, waiters for a revision, and watchers.
func (v *View) apply(b store.WatchBatch) {
	now := v.now().UnixNano()
	for i := range b.Events {
		if e := v.change(&b.Events[i]); e != nil {
			e.at = now
			v.events = append(v.events, e)
			e.Collection.history.append(e)
		}
	}
	for _, c := range v.dirty {
		c.publish()
	}
	v.notify(v.events)
	v.advance(b.Revision)
	v.notifier.notify(v.dirty)
	for _, c := range v.dirty {
		c.dirty = false
	}
	clear(v.events)
	clear(v.dirty)
	v.events, v.dirty = v.events[:0], v.dirty[:0]
}

// change applies one event to its collection's tree. It returns nil if there is nothing to change.
func (v *View) change(s *store.Event) *Event {
	prefix, rest, ok := split(s.Key)
	if !ok {
		v.log.Debug("key in the store does not belong to an object", "key", s.Key)
		return nil
	}
	c := v.Collection(prefix)
	var e *Entry
	if !s.Deleted {
		e = v.entry(prefix, rest,
			store.Record{Key: s.Key, Value: s.Value, Revision: s.Revision, Created: s.Created}, v.in)
	}
	if e != nil {
		v.compressor.take(prefix, e, c.tree.root.get(rest))
		if e.Unreadable() != nil {
			e.inherit(c.tree.root.get(rest))
			v.warn(e.Unreadable())
		}
	}
	out := &Event{Type: Added, Revision: s.Revision, Entry: e, Collection: c}
	if e == nil { // deleted, or replaced by a value that is not an object
		if out.Prev = c.tree.remove(rest); out.Prev == nil {
			return nil
		}
		out.Type, out.Entry = Deleted, out.Prev.at(s.Revision)
	} else if out.Prev = c.tree.put(e.key, e); out.Prev != nil {
		out.Type = Modified
		out.Prev.object.Store(nil) // history keeps the entry, but it is rarely read
	}
	c.last = s.Revision
	if !c.dirty {
		c.dirty = true
		v.dirty = append(v.dirty, c)
	}
	return out
}

// publish makes the tree visible to readers.
func (c *Collection) publish() {
	c.state.Store(&state{
		root: c.tree.freeze(), last: c.last, next: c.history.ring.Load().next.Load(), unreadable: c.tree.unreadable,
	})
}

func (v *View) notify(events []*Event) {
	if len(events) == 0 {
		return
	}
	for _, f := range v.subscribers {
		f(events)
	}
}

// advance shows rev to the world.
func (v *View) advance(rev int64) {
	if rev > v.revision.Load() {
		v.revision.Store(rev)
		v.waiters.release(rev)
	}
}

func (v *View) sweep() {
	now := v.now()
	v.collections.Range(func(_, c any) bool {
		c.(*Collection).history.sweep(now.UnixNano())
		c.(*Collection).pins.sweep(now)
		c.(*Collection).indexes.sweep(now)
		return true
	})
}
