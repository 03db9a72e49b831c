package server

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/bowsprit/bowsprit/internal/auth/abac"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/modes"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/node"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// viewer returns the viewer, which determines the objects of a resource that a caller may see. It is the roles, if no
// mode can refuse their grants.
func (b *built) viewer() authz.Viewer {
	c := &b.config.Authorization
	refuses := func(mode string) bool { return mode != modes.RBAC && mode != modes.Node && mode != modes.ABAC }
	if b.behind != nil || !slices.Contains(c.Modes, modes.RBAC) || slices.ContainsFunc(c.Modes, refuses) {
		return nil
	}
	return b.host.Roles
}

// openModes makes the authorization modes.
func (b *built) openModes() (*modes.Modes, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	c := &b.config.Authorization
	m, err := modes.Open(modes.Config{
		File: c.ConfigFile, Names: c.Modes,
		Webhook: modes.WebhookConfig{
			KubeconfigFile: c.WebhookConfigFile, Version: c.WebhookVersion, AuthorizedTTL: c.WebhookCacheAuthorizedTTL,
			UnauthorizedTTL: c.WebhookCacheUnauthorizedTTL,
		},
		Make: map[string]func() (authz.Mode, error){
			modes.RBAC: func() (authz.Mode, error) { return b.host.Roles, nil },
			modes.Node: func() (authz.Mode, error) {
				has := func(feature string) bool {
					return config.Emulated(&b.config.Emulation).Has(feature, b.config.API.Features)
				}
				return node.Authorizer{
					View: b.host.View, PodCertificates: has("PodCertificateRequest"),
					TrustBundles: has("ClusterTrustBundle"),
				}, nil
			},
			modes.ABAC: func() (authz.Mode, error) {
				policies, err := abac.Load(c.PolicyFile, b.log)
				if err != nil {
					return nil, fmt.Errorf("%w: correct it, or --authorization-policy-file", err)
				}
				return policies, nil
			},
		},
		Dial:    b.host.Egress.Selected(egress.ControlPlane),
		Metrics: b.host.Metrics, ServerID: identity.Name(host), Now: b.host.Now, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	if c.ConfigFile != "" {
		b.background(func(ctx context.Context) error { m.Run(ctx); return nil })
	}
	return m, nil
}
