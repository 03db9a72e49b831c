package watchcache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Bounds of the snapshots that a collection retains for later pages of a list. Each costs the changes made since.
const (
	pinLimit = 16              // the least recently used snapshot is dropped
	pinAge   = 5 * time.Minute // since its last use, at least the lifetime of kube-apiserver's continue tokens
	// rewindLimit is the maximum number of events to undo for an old snapshot; beyond it a range read of the store is
	// cheaper.
	rewindLimit = 20_000
)

// pins holds retained snapshots, the most recently used last.
type pins struct {
	mu   sync.Mutex
	list []pin
}

type pin struct {
	snapshot *Snapshot
	used     time.Time
}

// Pin retains s for later calls of SnapshotAt with its revision: call it when a page of a list has been served and more
// follow. Pins of old lists fall away by themselves.
func (c *Collection) Pin(s *Snapshot) {
	now := c.view.now()
	p := &c.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(at pin) bool { return at.snapshot.Revision == s.Revision })
	if len(p.list) >= pinLimit {
		p.list = slices.Delete(p.list, 0, 1)
	}
	p.list = append(p.list, pin{s, now})
}

func (p *pins) get(rev int64, now time.Time) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, at := range p.list {
		if at.snapshot.Revision == rev {
			p.list = append(slices.Delete(p.list, i, i+1), pin{at.snapshot, now})
			return at.snapshot
		}
	}
	return nil
}

func (p *pins) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(at pin) bool { return now.Sub(at.used) > pinAge })
	if len(p.list) == 0 {
		p.list = nil
	}
}

// SnapshotAt returns the collection exactly at rev. It waits if rev has not been reached. It returns a pinned snapshot
// or an unchanged state at once; otherwise it undoes events of the history, or reads the store. It returns ErrExpired
// if the store has compacted rev, or if rev is before the store's horizon.
func (c *Collection) SnapshotAt(ctx context.Context, rev int64) (*Snapshot, error) {
	if err := c.view.WaitFor(ctx, rev); err != nil {
		return nil, err
	}
	if rev < c.view.store.Horizon() {
		return nil, ErrExpired
	}
	now := c.Snapshot()
	if rev >= now.last {
		return &Snapshot{Revision: rev, root: now.root, last: now.last, unreadable: now.unreadable}, nil
	}
	if s := c.pins.get(rev, c.view.now()); s != nil {
		return s, nil
	}
	s := c.rewind(now, rev)
	if s == nil {
		var err error
		if s, err = c.fetch(ctx, rev); err != nil {
			return nil, err
		}
	}
	c.Pin(s)
	return s, nil
}

// rewind undoes the events after rev on a copy of s. It returns nil if some are missing or there are too many.
func (c *Collection) rewind(s *Snapshot, rev int64) *Snapshot {
	from, ok := c.history.seek(rev)
	if !ok {
		return nil
	}
	r := c.history.ring.Load()
	end := r.next.Load()
	for end > from { // events after s
		e := r.at(end - 1)
		if e == nil {
			return nil
		}
		if e.Revision <= s.last {
			break
		}
		end--
	}
	if end < from || end-from > rewindLimit {
		return nil
	}
	t := tree{root: s.root, unreadable: s.unreadable}
	for n := end; n > from; n-- {
		e := r.at(n - 1)
		if e == nil {
			return nil
		}
		if e.Prev == nil {
			t.remove(e.Entry.key)
		} else {
			t.put(e.Prev.key, e.Prev)
		}
	}
	return &Snapshot{Revision: rev, root: t.freeze(), last: rev, unreadable: t.unreadable}
}

// fetch reads the collection at rev from the store, 0 meaning now. Then pages may be of different revisions.
func (c *Collection) fetch(ctx context.Context, rev int64) (*Snapshot, error) {
	var t tree
	in := newInterner()
	o := store.RangeOptions{Prefix: c.prefix + "/", Limit: pageSize, Revision: rev}
	for {
		r, err := c.view.store.Range(ctx, o)
		switch {
		case errors.Is(err, store.ErrCompacted):
			return nil, ErrExpired
		case err != nil:
			return nil, err
		}
		for _, rec := range r.Records {
			_, rest, ok := split(rec.Key)
			if !ok {
				continue
			}
			if e := c.view.entry(c.prefix, rest, rec, in); e != nil {
				t.put(e.key, e)
			}
		}
		if !r.More {
			return &Snapshot{Revision: rev, root: t.freeze(), last: rev, unreadable: t.unreadable}, nil
		}
		o.After = r.Records[len(r.Records)-1].Key
	}
}
