package part

import (
	"context"
	"time"
)

const (
	// startTimeout bounds what a part writes before the first request: a machine that is busy starts late rather than
	// without what every cluster has.
	startTimeout = time.Minute
	// startHooked is that bound where webhooks are registered: one that does not answer must not keep the server from
	// starting.
	startHooked = 5 * time.Second
)

// Starting returns the context for what a Part writes in Start.
func (h *Host) Starting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.startWithin())
}

func (h *Host) startWithin() time.Duration {
	for _, plural := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		if h.View.Collection(plural).Snapshot().Len() > 0 {
			return startHooked
		}
	}
	return startTimeout
}
