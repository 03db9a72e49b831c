package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

const (
	// healInterval is the interval for retrying unreadable objects: their keys may be available again.
	healInterval = 10 * time.Second
	// healOneByOne is the maximum number of objects to read one by one; for more, the whole collection is read.
	healOneByOne = 100
)

// healEvery retries unreadable objects until ctx ends.
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
				v.log.Debug("unreadable objects cannot be read again; retried later", "collection", c.prefix, "error", err)
			}
		}
	}
}

// Heal retries unreadable objects of the collection: the given keys ("namespace/name" or "name"), or all. When it
// returns, objects that have become readable are visible. Their watchers must list again, since no event reports them.
// Run must be running.
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
			continue // the view will receive the change
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

// Reread reads all objects of the collection from the store again, after a change of the decoding: unreadable objects
// may be readable now, and the reverse. Run must be running.
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

// renew replaces entries by newly read ones with the same revision if their readability has changed.
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
			continue // unchanged, or a newer state follows
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
	v.notify(healed)
	v.notifier.notify([]*Collection{c})
}
