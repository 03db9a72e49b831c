package verb

import (
	"context"
	"errors"
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// rewriters is the number of concurrent rewrites: enough to share an fsync, few enough to leave the store to other
// clients.
const rewriters = 2

// Rewrite stores objects of the call's kind again, unchanged except for their form: the current storage version, its
// defaults, without undeclared fields. The effect is that of an update without changes, but for many objects with few
// webhook calls and without admission. Rewrite skips objects already stored in this form, and objects written or
// deleted since the entries were read. It returns the number of objects written.
func (v *Verbs) Rewrite(ctx context.Context, c *Call, entries []*watchcache.Entry) (written int, err error) {
	c = c.In(c.Resource.Storage)
	shown, err := v.AllInVersion(ctx, c, entries)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // guards written
	var wg sync.WaitGroup
	work := make(chan int) // unbuffered: a failure stops the rest at once
	for range min(rewriters, len(entries)) {
		wg.Go(func() {
			for i := range work {
				changed, err := v.rewrite(ctx, c.Named(entries[i].Namespace, entries[i].Name), entries[i], shown[i])
				if err != nil {
					cancel(err)
				} else if changed {
					mu.Lock()
					written++
					mu.Unlock()
				}
			}
		})
	}
feed:
	for i := range entries {
		select {
		case work <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	return written, context.Cause(ctx)
}

// rewrite stores one object; shown is its entry in the storage version.
func (v *Verbs) rewrite(ctx context.Context, c *Call, e, shown *watchcache.Entry) (written bool, err error) {
	raw, err := v.JSON(c, shown)
	if err == nil && e.Documents() != nil { // e's JSON omits the documents
		raw, err = convert.PresentBytes(c.Resource, c.Version, shown.JSON())
	}
	if err != nil {
		return false, err
	}
	if string(raw) == string(e.JSON()) {
		stale, err := v.encoder.stale(ctx, c, e)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		if err != nil || !stale {
			return false, err
		}
	}
	obj, err := convert.DecodeStored(raw)
	if err != nil {
		return false, err
	}
	err = v.overwrite(ctx, c, e, codec.EncodeStored(obj, e.Documents()...))
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, storeError(err, c, c.Name)
}
