package storageversion

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const (
	// againEvery is the interval of checks of written entries, and retryEvery the interval of retries of failed ones,
	// as in Kubernetes.
	againEvery = 10 * time.Minute
	retryEvery = time.Second
	// writers is how many entries are written at a time.
	writers = 8
)

// records are this server's entries.
type records struct {
	*part.Host
	server string        // the name of this server's Lease, set by Start
	wake   chan struct{} // capacity 1: one run covers all changes before it

	complete atomic.Bool // pending is empty and stays so
	mu       struct {
		sync.Mutex
		// pending are the built-in resources with an entry not yet written since the start, with the last error.
		pending map[catalog.GroupResource]error
		// written are the resources with a written entry, by the names of their StorageVersions: a change of
		// definitions requires only checks of the others.
		written map[string]*catalog.Resource
	}
}

func newRecords(h *part.Host) *records {
	r := &records{Host: h, wake: make(chan struct{}, 1)}
	r.mu.pending, r.mu.written = map[catalog.GroupResource]error{}, map[string]*catalog.Resource{}
	h.Catalog.Snapshot().Resources(func(one *catalog.Resource) {
		if !hasEntry(one) {
			return
		}
		r.mu.pending[catalog.GroupResource{Group: one.Group, Resource: one.Plural}] = nil
		if one.Cohabits.Resource != "" {
			r.mu.pending[one.Cohabits] = nil
		}
	})
	h.View.Subscribe(r.observe)
	return r
}

// observe receives every change, in the view's goroutine: definitions add resources.
func (r *records) observe(events []*watchcache.Event) {
	for _, ev := range events {
		if ev.Collection.Prefix() != control.DefinitionsPrefix {
			continue
		}
		select {
		case r.wake <- struct{}{}:
		default:
		}
		return
	}
}

// first writes the entries before the first request, within a short time limit.
func (r *records) first(ctx context.Context) {
	ctx, cancel := r.Starting(ctx)
	defer cancel()
	if err := r.write(ctx, true); err != nil {
		r.Log.Warn("this server cannot publish its storage versions of some resources, and refuses writes of them until it can; "+
			"retried every second", "error", err)
	}
}

// run updates the entries after changes of definitions, and restores changed or deleted ones, until ctx ends.
func (r *records) run(ctx context.Context) {
	var err error
	for ctx.Err() == nil {
		pause := againEvery
		if err != nil || !r.complete.Load() {
			pause = retryEvery
		}
		timer, all := time.NewTimer(pause), false
		select {
		case <-r.wake:
		case <-timer.C:
			all = pause == againEvery
		case <-ctx.Done():
		}
		timer.Stop()
		failed := err != nil
		if err = r.write(ctx, all); err != nil && !failed && ctx.Err() == nil {
			r.Log.Warn("this server cannot publish its storage versions of some resources; retried every second",
				"error", err)
		}
	}
}

// write writes outdated entries, and removes the entries of removed resources. It checks all of them, or only the
// entries of resources that have changed since their last write.
func (r *records) write(ctx context.Context, all bool) error {
	snap := r.Catalog.Snapshot()
	wanted := map[string]*catalog.Resource{}
	snap.Resources(func(one *catalog.Resource) {
		if hasEntry(one) {
			wanted[nameOf(one)] = one
		}
	})
	todo := r.changed(wanted, all)
	names := make(chan string) // unbuffered: each worker takes the next name
	var running sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range writers {
		running.Go(func() {
			for name := range names {
				one := wanted[name]
				err := ctx.Err()
				switch {
				case err != nil:
				case one == nil:
					err = leave(ctx, r.Host, name, func(e entry) bool { return e.APIServerID == r.server })
				default:
					err = r.record(ctx, name, entryOf(r.server, one, snap))
				}
				r.note(name, one, err)
				if err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, name := range todo {
		names <- name
	}
	close(names)
	running.Wait()
	if len(errs) > 0 {
		return errs[0] // one is enough: the others differ only in the resource
	}
	r.complete.Store(true)
	return nil
}

// changed returns the names of the StorageVersions to look at.
func (r *records) changed(wanted map[string]*catalog.Resource, all bool) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all {
		clear(r.mu.written)
		names = r.outdated(wanted)
	}
	for name := range r.mu.written {
		if wanted[name] == nil {
			names = append(names, name)
		}
	}
	for name, one := range wanted {
		if r.mu.written[name] != one {
			names = append(names, name)
		}
	}
	return names
}

// note records the result for the entry of a resource, which is nil if the resource is gone.
func (r *records) note(name string, one *catalog.Resource, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && one == nil:
		delete(r.mu.written, name)
	case err == nil:
		r.mu.written[name] = one
	}
	if one == nil || one.Custom() {
		return
	}
	for _, gr := range []catalog.GroupResource{{Group: one.Group, Resource: one.Plural}, one.Cohabits} {
		if _, pending := r.mu.pending[gr]; !pending {
			continue
		}
		if err == nil {
			delete(r.mu.pending, gr)
		} else {
			r.mu.pending[gr] = err
		}
	}
}

// outdated returns the names of StorageVersions with an entry of this server for a resource that it no longer serves.
func (r *records) outdated(wanted map[string]*catalog.Resource) (names []string) {
	r.View.Collection(ref.StorageVersions.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if wanted[e.Name] == nil {
			if v, err := read(e); err == nil && has(v.Status.StorageVersions, r.server) {
				names = append(names, e.Name)
			}
		}
		return true
	})
	return names
}

// record writes the entry of a resource, unless it is up to date.
func (r *records) record(ctx context.Context, name string, e entry) error {
	if there := r.View.Collection(ref.StorageVersions.Prefix).Snapshot().Get("", name); there != nil {
		if v, err := read(there); err == nil && !put(&v.Status, e) && len(v.Status.Conditions) > 0 {
			return nil
		}
	} else if err := create(ctx, r.Host, name); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return change(ctx, r.Host, name, func(s *status) bool { return put(s, e) || len(s.Conditions) == 0 })
}

// check returns nil if all entries have been written once.
func (r *records) check() error {
	if r.complete.Load() {
		return nil
	}
	r.mu.Lock()
	pending := maps.Clone(r.mu.pending)
	r.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	return errNotFinished
}

var errNotFinished = errors.New("not finished")
