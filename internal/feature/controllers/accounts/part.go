// Package accounts creates the default service account and the root certificate ConfigMap of every namespace, fills
// secrets with service account tokens, and records the use of these tokens.
//
// It is a part: loops that write through the verbs, and a ConfigMap that is created before the first request.
package accounts

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Controller is Kubernetes' name for the loop that creates default service accounts.
const Controller = "serviceaccount-controller"

// Part brings the loops, and the ConfigMap.
func Part() part.Part {
	return part.Part{
		Name: "service accounts",
		Loops: []part.Loop{
			{Name: Controller, Workers: 1, New: func(h *part.Host) control.Reconciler { return accounts{h} }},
			{
				Name: "root-ca-certificate-publisher-controller", Workers: 1,
				New: func(h *part.Host) control.Reconciler { return rootCA{h} },
			},
			{
				Name: "serviceaccount-token-controller", Workers: 1,
				New: func(h *part.Host) control.Reconciler { return &tokenSecrets{Host: h} },
			},
		},
		Handlers: func(h *part.Host) part.Handlers {
			return part.Handlers{TokenUsed: func(ctx context.Context, secret *watchcache.Entry, day string) {
				noteTokenUse(ctx, h.Verbs, secret, day)
			}}
		},
		Start: func(ctx context.Context, h *part.Host) error {
			err := makeTracking(ctx, h.Verbs)
			if control.Refused(ctx, err) {
				h.Log.Warn("the ConfigMap with the start of token tracking cannot be created; retried every 10 seconds",
					"error", err)
				return nil
			}
			return err
		},
		Keep: func(ctx context.Context, h *part.Host) error { return makeTracking(ctx, h.Verbs) },
	}
}
