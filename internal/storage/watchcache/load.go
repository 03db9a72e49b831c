package watchcache

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// pageSize of the store's ranges at load: large enough that pages do not cost, small enough that parsing begins early.
const pageSize = 1000

// Load reads the whole store at one revision. Afterwards the view is usable; Run keeps it current.
func (v *View) Load(ctx context.Context) error { return v.list(ctx) }

// list makes the view equal to the store at one revision, whatever its state.
func (v *View) list(ctx context.Context) error {
	trees := map[*Collection]*tree{}
	rev, err := v.readAll(ctx, func(prefix string, e *Entry) {
		c := v.Collection(prefix)
		t := trees[c]
		if t == nil {
			t = &tree{}
			trees[c] = t
		}
		// An unchanged object keeps its entry, with its cached encodings and references.
		old := c.tree.root.get(e.key)
		if old != nil && old.Revision == e.Revision && (old.Unreadable() == nil) == (e.Unreadable() == nil) {
			e = old
		} else {
			e.inherit(old)
		}
		t.put(e.key, e)
	})
	if err != nil {
		return err
	}
	v.start.Store(rev)
	var events []*Event
	for _, c := range v.Collections() {
		t := trees[c]
		if t == nil {
			t = &tree{}
		}
		events = c.replace(t, rev, events, len(v.subscribers) > 0)
		v.warnAll(c)
	}
	if v.Revision() > 0 {
		slices.SortStableFunc(events, func(a, b *Event) int {
			if c := cmp.Compare(a.Revision, b.Revision); c != 0 {
				return c
			}
			return cmp.Compare(b.Type, a.Type) // at the same revision, deletions come first
		})
	}
	for batch := range slices.Chunk(events, pageSize) {
		v.notify(batch)
	}
	v.advance(rev)
	v.notifier.notify(v.Collections())
	return nil
}

// replace sets the collection's content as of rev, and appends the differences to events. Its history begins anew.
func (c *Collection) replace(t *tree, rev int64, events []*Event, wanted bool) []*Event {
	old := c.tree.root
	c.tree, c.last = *t, rev
	c.history.expire(rev)
	c.publish()
	if !wanted {
		return events
	}
	t.root.scan("", "", func(e *Entry) bool {
		switch was := old.get(e.key); {
		case was == nil:
			events = append(events, &Event{Type: Added, Revision: e.Revision, Entry: e, Collection: c})
		case was.Revision != e.Revision || was.Unreadable() != nil && e.Unreadable() == nil:
			events = append(events, &Event{Type: Modified, Revision: e.Revision, Entry: e, Prev: was, Collection: c})
		}
		return true
	})
	old.scan("", "", func(e *Entry) bool {
		if t.root.get(e.key) == nil { // the revision of the deletion is unknown, but at most rev
			events = append(events, &Event{Type: Deleted, Revision: rev, Entry: e.at(rev), Prev: e, Collection: c})
		}
		return true
	})
	return events
}

// page is a page of the store on its way through the parsers.
type page struct {
	records  []store.Record
	prefixes []string
	entries  []*Entry // nil for a record that is not an object
	done     chan struct{}
}

// readAll calls f with every object of the store, in key order, and returns the revision of the read. It reads pages
// one after the other and parses them in parallel; f runs in the caller's goroutine.
func (v *View) readAll(ctx context.Context, f func(prefix string, e *Entry)) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parsers := runtime.GOMAXPROCS(0)
	todo, ordered := make(chan *page, parsers), make(chan *page, parsers) // bounds the pages in memory
	for range parsers {
		go func() {
			in := newInterner()
			for p := range todo {
				v.parse(p, in)
			}
		}()
	}
	var rev int64
	var failure error
	go func() {
		defer close(todo)
		defer close(ordered)
		o := store.RangeOptions{Limit: pageSize}
		for {
			r, err := v.store.Range(ctx, o)
			if err != nil {
				failure = err
				return
			}
			rev = r.Revision
			p := &page{records: r.Records, done: make(chan struct{})}
			select {
			case ordered <- p:
				todo <- p
			case <-ctx.Done():
				failure = ctx.Err()
				return
			}
			if !r.More {
				return
			}
			o.Revision, o.After = r.Revision, r.Records[len(r.Records)-1].Key
		}
	}()
	for p := range ordered {
		<-p.done
		for i, e := range p.entries {
			if e != nil {
				f(p.prefixes[i], e)
			}
		}
	}
	return rev, failure
}

func (v *View) parse(p *page, in *interner) {
	defer close(p.done)
	p.entries = make([]*Entry, len(p.records))
	p.prefixes = make([]string, len(p.records))
	for i, r := range p.records {
		prefix, rest, ok := split(r.Key)
		if !ok {
			v.log.Debug("key in the store does not belong to an object", "key", r.Key)
			continue
		}
		e := v.entry(prefix, rest, r, in)
		if e == nil {
			continue
		}
		v.compressor.take(prefix, e, nil)
		p.prefixes[i], p.entries[i] = prefix, e
		p.records[i].Value = nil // spliced into the entry; free it now
	}
}
