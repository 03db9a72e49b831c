// Package trust publishes authentication settings for extension API servers: the ConfigMap
// extension-apiserver-authentication in kube-system, with the authorities of clients and of front proxies, and the
// headers of the latter.
//
// It is a part beside the core. Servers that share an etcd each add their own values to the ConfigMap; expired
// authorities are removed. Source: pkg/controlplane/controller/clusterauthenticationtrust of Kubernetes 1.36.
package trust

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Headers are the headers that this server accepts from front proxies.
type Headers struct{ Username, UID, Group, ExtraPrefixes, AllowedNames []string }

// ownHeaders are the headers that this server sends as a front proxy, with a certificate that it has created for
// itself.
var ownHeaders = Headers{
	Username: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"}, Group: []string{"X-Remote-Group"},
	ExtraPrefixes: []string{"X-Remote-Extra-"}, AllowedNames: []string{pki.ProxyClientName},
}

// Part keeps the ConfigMap.
func Part(headers Headers) part.Part {
	keep := func(ctx context.Context, h *part.Host) error {
		required := information{
			clientCA: h.Certificates.ClientCA(), proxyCA: h.Certificates.ProxyCA(), headers: headers,
		}
		if own := h.Certificates.OwnProxyCA(); own != nil {
			required.proxyCA, required.headers = own, ownHeaders
		}
		k := publisher{verbs: h.Verbs, required: required}
		if err := k.sync(ctx); err != nil {
			h.Log.Warn("the ConfigMap kube-system/extension-apiserver-authentication is not up to date; retried in ten seconds",
				"error", err)
		}
		return nil
	}
	return part.Part{Name: "trust of other servers", Keep: keep, Start: func(ctx context.Context, h *part.Host) error {
		changed := h.Certificates.Changed()
		// Publish new authorities at once.
		h.Background(func(ctx context.Context) error {
			for {
				select {
				case <-changed:
				case <-ctx.Done():
					return nil
				}
				changed = h.Certificates.Changed()
				_ = keep(ctx, h) // keep has logged the error
			}
		})
		ctx, cancel := h.Starting(ctx)
		defer cancel()
		return keep(ctx, h)
	}}
}
