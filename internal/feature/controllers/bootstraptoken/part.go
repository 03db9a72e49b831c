// Package bootstraptoken implements the controllers of bootstrap tokens, by which nodes join. One publishes the
// ConfigMap kube-public/cluster-info, from which a node with a token learns the cluster's authority. One signs it with
// every token, and one deletes expired tokens (pkg/controller/bootstrap of Kubernetes 1.36, and the additions of
// kubeadm).
//
// Package auth/token defines the tokens and their secrets, and authenticates by them.
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

// Settings configure the part.
type Settings struct {
	// Publish creates the ConfigMap cluster-info, readable by everyone. Without the controller that signs it, it is not
	// published.
	Publish bool
	// URL returns the URL by which nodes reach the server, given the server's own URL.
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
