package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// loaded is the result of the third phase: a core with all stored objects, and the objects that every server has.
type loaded struct{ *built }

// load is the third phase.
func (b *built) load(ctx context.Context) (*loaded, error) {
	l := &loaded{b}
	return l, inOrder(ctx, l.loadView, l.reloadEncryption, l.startParts)
}

func (l *loaded) loadView(ctx context.Context) error {
	defer part.NoteSlow(l.log, "read all objects from the store")()
	if err := l.host.View.Load(ctx); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	l.background(l.host.View.Run)
	return nil
}

// startParts makes the objects that must exist before the first request.
func (l *loaded) startParts(ctx context.Context) error {
	defer part.NoteSlow(l.log, "make the objects that every cluster has")()
	if l.behind == nil {
		if err := control.Bootstrap(ctx, l.host.Verbs); err != nil {
			return err
		}
	}
	for _, one := range l.parts {
		if one.Start == nil {
			continue
		}
		if err := one.Start(ctx, &l.host); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	l.background(l.keep)
	return nil
}

// keepEvery is the interval in which the server checks the objects of its start, as in kube-apiserver.
const keepEvery = 10 * time.Second

// keep recreates objects that every server has and a client has deleted, until ctx ends.
func (l *loaded) keep(ctx context.Context) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		var err error
		if l.behind == nil {
			err = control.KeepNamespaces(ctx, l.host.Verbs)
		}
		for _, one := range l.parts {
			if one.Keep != nil {
				err = errors.Join(err, one.Keep(ctx, &l.host))
			}
		}
		if err != nil && ctx.Err() == nil {
			l.log.Warn(
				"an object that the server always has is missing and cannot be created; retried every 10 seconds",
				"error", err)
		}
	}
}
