package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

const (
	// healInterval is how often unreadable objects are looked at again: what decrypts them may have come back.
	healInterval = 10 * time.Second
	// healOneByOne is how many objects are read from the store one after the other; for more, all are read at once.
	healOneByOne = 100
)

// healEvery looks again at what is unreadable until ctx ends.
func (v *View) healEvery(ctx context.Context) {
	tick := time.NewTicker(healInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, c := range v.Collections() {
			if c.Snapshot().Unreadable() == 0 {
				continue
			}
			if err := c.Heal(ctx); err != nil && ctx.Err() == nil {
				v.log.Debug("another look at unreadable objects failed", "collection", c.prefix, "error", err)
			}
		}
	}
}

// Heal looks again at the unreadable objects of the collection: at those of keys ("namespace/name" or "name"), or at
// all. What can be read by now is there when it returns; watchers must list again then, since what they have missed is
// in no event. It needs Run to be running.
func (c *Collection) Heal(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		unreadable := c.Snapshot().FirstUnreadable("", "", healOneByOne+1)
		if len(unreadable) > healOneByOne {
			return c.Reread(ctx)
		}
		for _, e := range unreadable {
			keys = append(keys, e.key)
		}
	}
	in := newInterner()
	var found []*Entry
	for _, key := range keys {
		r, err := c.view.store.Get(ctx, c.prefix+"/"+key)
		if errors.Is(err, store.ErrNotFound) {
			continue // the view will see it
		}
		if err != nil {
			return err
		}
		if e := c.view.entry(c.prefix, key, r, in); e != nil {
			found = append(found, e)
		}
	}
	return c.renew(ctx, found)
}

// Reread reads all objects of the collection from the store again, for when the way in which they are read has changed:
// what could not be read may be readable by now, and the other way round. It needs Run to be running.
func (c *Collection) Reread(ctx context.Context) error {
	s, err := c.fetch(ctx, 0)
	if err != nil {
		return err
	}
	found := make([]*Entry, 0, s.Len())
	s.Scan("", "", func(e *Entry) bool {
		found = append(found, e)
		return true
	})
	return c.renew(ctx, found)
}

// renew puts entries that were just read in the place of those of the same revision which are readable and should not
// be, or the other way round.
func (c *Collection) renew(ctx context.Context, found []*Entry) error {
	if len(found) == 0 {
		return nil
	}
	done := make(chan struct{})
	play := func() {
		defer close(done)
		c.replaceEqual(found)
	}
	select {
	case c.view.plays <- play:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

// replaceEqual is renew in the view's goroutine.
func (c *Collection) replaceEqual(found []*Entry) {
	v := c.view
	var healed []*Event
	changed, lost := false, 0
	for _, e := range found {
		old := c.tree.root.get(e.key)
		if old == nil || old.Revision != e.Revision || old.Unreadable() == nil && e.Unreadable() == nil {
			continue // as it was, or another state is on its way
		}
		switch {
		case old.Unreadable() != nil && e.Unreadable() == nil:
			v.compressor.take(c.prefix, e, nil)
			healed = append(healed, &Event{Type: Modified, Revision: e.Revision, Entry: e, Prev: old, Collection: c})
		case old.Unreadable() == nil:
			lost++
		}
		e.inherit(old)
		c.tree.put(e.key, e)
		changed = true
	}
	if !changed {
		return
	}
	if len(healed) > 0 {
		v.log.Info("objects in the store can be read again", "collection", c.prefix, "objects", len(healed))
		c.history.expire(max(v.Revision(), c.last))
	}
	c.publish()
	if lost > 0 {
		v.warnAll(c)
	}
	v.tell(healed)
	v.notifier.notify([]*Collection{c})
}
