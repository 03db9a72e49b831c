// Package bootstraptoken has the controllers of the tokens by which nodes join: of the ConfigMap
// kube-public/cluster-info, by which a node that knows a token finds out whom to trust, the one that signs it with
// every token, and the one that deletes tokens which have expired (pkg/controller/bootstrap of Kubernetes 1.36, and
// what kubeadm adds to a cluster).
//
// What the tokens and their secrets are, and who authenticates by one, is package auth/token's matter.
package bootstraptoken

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
)

// The controllers' names.
const (
	SignerController  = "bootstrap-signer-controller"
	CleanerController = "token-cleaner-controller"
)

const manager = "kube-controller-manager"

var (
	configMaps = ref.ConfigMaps.GroupResource()
	secrets    = ref.Secrets.GroupResource()
)

// Settings say what the part does.
type Settings struct {
	// Publish makes the ConfigMap cluster-info, for everyone to read. It is left to others without the controller that
	// signs it.
	Publish bool
	// URL returns where nodes reach the server that is at url for itself.
	URL func(url string) string
}

// Part brings the controllers and the ConfigMap.
func Part(s Settings) part.Part {
	p := part.Part{Name: "bootstrap tokens", Loops: []part.Loop{
		{Name: SignerController, Workers: 1, New: func(h *part.Host) control.Reconciler { return &signer{h} }},
		{Name: CleanerController, Workers: 1, New: func(h *part.Host) control.Reconciler { return &cleaner{h} }},
	}}
	if !s.Publish {
		return p
	}
	var last published
	sync := func(ctx context.Context, h *part.Host, starting bool) error {
		if !h.Runs(SignerController) {
			return nil
		}
		err := last.publish(ctx, h, s.URL(h.URL), starting)
		if control.Refused(ctx, err) {
			h.Log.Warn("the ConfigMap kube-public/cluster-info is not up to date; retried every 10 seconds",
				"error", err)
			return nil
		}
		return err
	}
	p.Start = func(ctx context.Context, h *part.Host) error { return sync(ctx, h, true) }
	p.Keep = func(ctx context.Context, h *part.Host) error { return sync(ctx, h, false) }
	return p
}
