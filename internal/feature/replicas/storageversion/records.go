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
	// againEvery is how often entries that are there are looked at, and retryEvery how often those are tried again that
	// could not be written: kube's values.
	againEvery = 10 * time.Minute
	retryEvery = time.Second
	// writers is how many entries are written at a time.
	writers = 8
)

// records are this server's entries.
type records struct {
	*part.Host
	server string        // the name of this server's Lease, set by Start
	wake   chan struct{} // capacity 1: one who looks sees all that has changed

	complete atomic.Bool // pending is empty and stays so
	mu       struct {
		sync.Mutex
		// pending are built-in resources whose entry has not been written since the start, with what was in the way.
		pending map[catalog.GroupResource]error
		// written are the resources whose entries are there, by the names of their StorageVersions, as far as this
		// server knows: when definitions change only the others are looked at.
		written map[string]*catalog.Resource
	}
}

func newRecords(h *part.Host) *records {
	r := &records{Host: h, wake: make(chan struct{}, 1)}
	r.mu.pending, r.mu.written = map[catalog.GroupResource]error{}, map[string]*catalog.Resource{}
	h.Catalog.Snapshot().Resources(func(one *catalog.Resource) {
		if !said(one) {
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

// observe hears of every change, in the view's goroutine: definitions bring resources.
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

// first writes the entries before the first request, as far as that is possible in short time.
func (r *records) first(ctx context.Context) {
	ctx, cancel := r.Starting(ctx)
	defer cancel()
	if err := r.write(ctx, true); err != nil {
		r.Log.Warn("this server cannot say in which versions it stores some resources, which take no writes until then; "+
			"retried every second", "error", err)
	}
}

// run has the entries follow the definitions, and makes them again that were changed or deleted, until ctx ends.
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
			r.Log.Warn("this server cannot say in which versions it stores some resources; retried every second",
				"error", err)
		}
	}
}

// write writes the entries that are not as they should be, and takes out those of resources that are gone. It looks at
// all of them, or only at those of resources that have changed since it has written theirs.
func (r *records) write(ctx context.Context, all bool) error {
	snap := r.Catalog.Snapshot()
	wanted := map[string]*catalog.Resource{}
	snap.Resources(func(one *catalog.Resource) {
		if said(one) {
			wanted[nameOf(one)] = one
		}
	})
	todo := r.changed(wanted, all)
	names := make(chan string) // capacity 0: who writes takes the next
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
		return errs[0] // the others say the same of other resources
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

// note notes what became of the entry of a resource, nil for one that is gone.
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

// outdated returns the names of StorageVersions with an entry of this server for what it serves no more.
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

// record writes the entry of a resource, if it is not there.
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
