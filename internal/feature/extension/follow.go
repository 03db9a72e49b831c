package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/part"
)

// Back-off of the watch of a storage.
const (
	followAgainFirst = 100 * time.Millisecond
	followAgainMost  = 30 * time.Second
)

// changes is the stream of changes of a Watcher, until it is ended.
type changes struct {
	events iter.Seq2[types.NamespacedName, error]
	end    context.CancelFunc
}

// start lists the storage for the first time.
func (k *storedKind) start(ctx context.Context, h *part.Host) error {
	k.host = h
	if c, ok := k.storage.(io.Closer); ok {
		h.OnStop(c.Close)
	}
	// The stream outlives the start and its context.
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	unbind := context.AfterFunc(ctx, end)
	first, err := k.subscribe(running)
	if err == nil && !unbind() {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return fmt.Errorf("storage of %s: %w", k.resource.Resource, err)
	}
	if k.watcher == nil {
		end()
	} else {
		h.Background(func(ctx context.Context) error {
			defer end()
			defer context.AfterFunc(ctx, end)()
			return k.follow(ctx, first)
		})
	}
	if k.poll > 0 {
		h.Background(k.run)
	}
	return nil
}

// subscribe opens the storage's stream of changes, if it has one, and then lists it, so that no change is missed.
func (k *storedKind) subscribe(ctx context.Context) (c changes, err error) {
	ctx, c.end = context.WithCancel(ctx)
	if k.watcher != nil {
		c.events, err = k.watcher.Changes(ctx)
	}
	if err == nil {
		err = k.sync(ctx)
	}
	if err != nil {
		c.end()
	}
	return c, err
}

var errTellsNoMore = errors.New("its stream of changes has ended")

// follow applies changes to the log until ctx ends. When the stream ends, it lists the storage again.
func (k *storedKind) follow(ctx context.Context, c changes) error {
	pause := followAgainFirst
	for {
		began := time.Now()
		err := k.take(ctx, c)
		for {
			if ctx.Err() != nil {
				return nil
			}
			k.host.Log.Warn("changes of a storage cannot be read; it is listed again, and served objects may be stale until then",
				"resource", k.resource.Resource, "error", err)
			if time.Since(began) > followAgainMost {
				pause = followAgainFirst
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
			pause = min(2*pause, followAgainMost)
			if c, err = k.subscribe(ctx); err == nil {
				break
			}
		}
	}
}

// take applies changes to the log until the stream ends.
func (k *storedKind) take(ctx context.Context, c changes) error {
	defer c.end()
	for name, err := range c.events {
		if err == nil {
			err = k.refresh(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return errTellsNoMore
}

// refresh writes the storage's current state of one object to the log.
func (k *storedKind) refresh(ctx context.Context, name types.NamespacedName) error {
	key := keyOf(name.Namespace, name.Name)
	defer k.lock(key)()
	obj, err := k.watcher.Get(ctx, name.Namespace, name.Name)
	if err != nil {
		return err
	}
	k.noteWritten(key) // a list in progress may have an older state
	return k.adoptLocked(ctx, name.Namespace, name.Name, obj)
}

// run lists the storage from time to time until ctx ends.
func (k *storedKind) run(ctx context.Context) error {
	tick := time.NewTicker(k.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := k.sync(ctx); err != nil && ctx.Err() == nil {
			k.host.Log.Warn("a storage cannot be listed; served objects may be stale, and the list is retried",
				"resource", k.resource.Resource, "error", err)
		}
	}
}
