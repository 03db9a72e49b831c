package part

import (
	"context"
	"time"
)

const (
	// startTimeout bounds the writes of a part before the first request: a busy machine starts late rather than without
	// the default objects.
	startTimeout = time.Minute
	// startHooked is the bound if webhooks are registered: one that does not answer must not prevent the start.
	startHooked = 5 * time.Second
)

// Starting returns the context for the writes of a Part in Start.
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
