package convert

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const (
	// maxBatch and maxBatchBytes bound one call: enough to amortize the round trip, and small enough for a webhook that
	// takes 30 ms for an object to respond in time. The limit is below the 7 MiB that controller-runtime's servers
	// read.
	maxBatch      = 1000
	maxBatchBytes = 4 << 20
	// maxCalls is the number of concurrent calls for one list.
	maxCalls = 4
)

// Entries returns entries of r in version to. Entries stored in that version, and all entries of kinds that need no
// call, are returned unchanged; the others are converted or taken from the cache. The slice is not changed; nil
// elements stay nil.
//
// One object that cannot be converted fails the whole call.
func (c *Converter) Entries(
	ctx context.Context, r *catalog.Resource, to *catalog.Version, entries []*watchcache.Entry,
) ([]*watchcache.Entry, error) {
	if !c.Changes(r) {
		return entries, nil
	}
	apiVersion := r.APIVersion(to)
	foreign := func(e *watchcache.Entry) bool { return e != nil && e.APIVersion != apiVersion }
	count := 0
	for _, e := range entries {
		if foreign(e) {
			count++
		}
	}
	if count == 0 {
		return entries, nil
	}
	all, jobs := make([]job, count), make([]*job, 0, count)
	shape := shapeOf(r, to)
	for i, e := range entries {
		if foreign(e) {
			j := &all[len(jobs)]
			*j = job{at: i, stored: e, key: keyOf(r, shape, e)}
			jobs = append(jobs, j)
		}
	}
	out := slices.Clone(entries)
	single := len(jobs) == 1
	for len(jobs) > 0 {
		c.cache.claim(jobs)
		c.fly(ctx, r, to, jobs)
		var left []*job
		for _, j := range jobs {
			again, err := j.wait(ctx, single)
			if err != nil {
				return nil, err
			}
			if again {
				left = append(left, j)
			}
			out[j.at] = j.found
		}
		c.metrics.count(jobs)
		jobs = left
	}
	return out, nil
}

// Entry is Entries for one entry.
func (c *Converter) Entry(
	ctx context.Context, r *catalog.Resource, to *catalog.Version, e *watchcache.Entry,
) (*watchcache.Entry, error) {
	out, err := c.Entries(ctx, r, to, []*watchcache.Entry{e})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func shapeOf(r *catalog.Resource, to *catalog.Version) unique.Handle[shape] {
	return unique.Make(shape{version: to.Name, definition: r.Definition.UID, generation: r.Definition.Generation})
}

func keyOf(r *catalog.Resource, to unique.Handle[shape], e *watchcache.Entry) cacheKey {
	key := cacheKey{object: e.UID, revision: e.Revision, shape: to}
	if key.object == "" {
		key.object = r.Prefix + "/" + e.Key()
	}
	return key
}

// job is one entry to convert for a caller.
type job struct {
	at     int // index of the result
	stored *watchcache.Entry
	key    cacheKey
	found  *watchcache.Entry // the result
	flight *flight           // nil if the cache had the result
	mine   bool              // the flight belongs to this caller
}

// wait waits for the job's flight and takes its result. again is true if another caller's flight ended for reasons that
// need not hold for this caller. single means that the caller needs one object, which must not fail because of others.
func (j *job) wait(ctx context.Context, single bool) (again bool, err error) {
	f := j.flight
	if f == nil {
		return false, nil
	}
	select {
	case <-f.done:
	default:
		if err := f.wait(ctx); err != nil {
			return false, err
		}
	}
	switch {
	case f.abandoned && j.mine:
		return false, ctx.Err()
	case f.abandoned:
		return true, nil
	case f.err != nil && single && !j.mine && !f.alone:
		return true, nil
	}
	j.found = f.entry
	return false, f.err
}

// wait waits until the flight has landed.
func (f *flight) wait(ctx context.Context) error {
	defer request.Wait(ctx)()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fly converts the entries of the jobs' own flights, a few calls at a time, and lands each flight in any case.
func (c *Converter) fly(ctx context.Context, r *catalog.Resource, to *catalog.Version, jobs []*job) {
	all := batches(jobs)
	if len(all) == 1 {
		c.flyBatch(ctx, r, to, all[0])
		return
	}
	var wg sync.WaitGroup
	var broken atomic.Pointer[any]
	var next atomic.Int64
	for range min(maxCalls, len(all)) {
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					broken.Store(&v)
				}
			}()
			for i := next.Add(1); int(i) <= len(all); i = next.Add(1) {
				c.flyBatch(ctx, r, to, all[i-1])
			}
		})
	}
	wg.Wait()
	if v := broken.Load(); v != nil {
		for _, batch := range all {
			c.abandon(batch) // flights that no call has reached
		}
		panic(*v)
	}
}

// flyBatch converts one batch in one call and lands its flights.
func (c *Converter) flyBatch(ctx context.Context, r *catalog.Resource, to *catalog.Version, batch []*job) {
	defer c.abandon(batch)
	if ctx.Err() != nil {
		return
	}
	entries := make([]*watchcache.Entry, len(batch))
	for i, j := range batch {
		entries[i] = j.stored
	}
	converted, errs := c.convertEntries(ctx, r, to, entries)
	if ctx.Err() != nil {
		return
	}
	for i, j := range batch {
		c.cache.land(j.key, j.flight,
			func(f *flight) { f.entry, f.err, f.alone = converted[i], errs[i], len(batch) == 1 })
	}
}

// abandon lands the remaining flights of a batch.
func (c *Converter) abandon(batch []*job) {
	for _, j := range batch {
		c.cache.land(j.key, j.flight, func(f *flight) { f.abandoned = true })
	}
}

// batches splits the jobs' own flights into batches for one call each.
func batches(jobs []*job) (all [][]*job) {
	var batch []*job
	size := 0
	for _, j := range jobs {
		if !j.mine {
			continue
		}
		n := len(j.stored.JSON())
		if len(batch) > 0 && (len(batch) == maxBatch || size+n > maxBatchBytes) {
			all, batch, size = append(all, batch), nil, 0
		}
		batch, size = append(batch, j), size+n
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

// convertEntries converts stored objects in one call. It returns as many entries and errors.
func (c *Converter) convertEntries(
	ctx context.Context, r *catalog.Resource, to *catalog.Version, entries []*watchcache.Entry,
) ([]*watchcache.Entry, []error) {
	out, errs := make([]*watchcache.Entry, len(entries)), make([]error, len(entries))
	var objs []object.Object
	var at []int // objs[j] is entries[at[j]]
	for i, e := range entries {
		obj, err := decodeStored(r, e)
		if err != nil {
			errs[i] = err
			continue
		}
		objs, at = append(objs, obj), append(at, i)
	}
	if len(objs) == 0 {
		return out, errs
	}
	converted, failed := c.changeOwn(ctx, r, to, objs)
	for j, i := range at {
		if errs[i] = failed[j]; errs[i] != nil {
			continue
		}
		if errs[i] = prune(r, to, converted[j]); errs[i] == nil {
			out[i], errs[i] = entries[i].Converted(codec.AppendJSON(nil, converted[j]))
		}
	}
	return out, errs
}

// decodeStored returns a stored object as a read in its stored version would return it.
func decodeStored(r *catalog.Resource, e *watchcache.Entry) (object.Object, error) {
	from := storedIn(r, e.APIVersion)
	if from == nil {
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", e.APIVersion)
	}
	v, err := codec.DecodeJSON(e.JSON())
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object.Object)
	if !ok {
		return nil, fmt.Errorf("stored %s %s is not an object", r.Kind, e.Key())
	}
	obj["kind"] = r.Kind
	return obj, restore(r, from, obj)
}
