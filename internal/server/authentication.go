package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/modes"
	"github.com/bowsprit/bowsprit/internal/auth/token"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// checkProxies refuses front proxies that any client could impersonate, and warns about dangerous settings.
func (o *opened) checkProxies() error {
	c := &o.config.Authentication.RequestHeader
	for _, text := range config.ProxyWarnings(c) {
		o.log.Warn(text)
	}
	if c.ClientCAFile == "" || !o.host.Certificates.ProxiesOverlap() {
		return nil
	}
	if len(c.AllowedNames) == 0 {
		return errors.New("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users")
	}
	o.log.Warn("an authority signs the certificates of front proxies and of other clients: a client whose certificate has an allowed name can act as any user; use an authority of its own for --requestheader-client-ca-file",
		"allowedNames", c.AllowedNames)
	return nil
}

// authenticator returns the authenticator of requests.
func (b *built) authenticator() (*authn.Authenticator, error) {
	c, h := &b.config.Authentication, &b.host
	audiences := h.Tokens.Audiences()
	config := authn.Config{
		ClientRoots: h.Certificates.ClientRoots, Proxy: frontProxy(&c.RequestHeader), Bearers: []authn.Bearer{h.Tokens},
		Audiences: audiences, Metrics: authn.NewMetrics(h.Metrics),
	}
	if config.Proxy != nil {
		config.Proxy.Roots = h.Certificates.ProxyRoots
	}
	if c.TokenAuthFile != "" {
		tokens, err := authn.LoadTokens(c.TokenAuthFile, b.log)
		if err != nil {
			return nil, fmt.Errorf("%w: correct it, or --token-auth-file", err)
		}
		config.Tokens = tokens
	}
	if c.BootstrapTokens {
		config.Bearers = append(config.Bearers, &token.Bootstrap{
			View: h.View, Audiences: audiences, Now: h.Now, Log: b.log,
		})
	}
	remote, err := b.openRemote(audiences)
	if err != nil {
		return nil, err
	}
	if remote != nil {
		config.Bearers = append(config.Bearers, remote)
	}
	enabled, paths, configured := remote.Anonymous()
	switch {
	case configured && c.Anonymous != nil:
		return nil, errors.New("anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file")
	case configured:
		config.NoAnonymous, config.AnonymousPaths = !enabled, paths
	default:
		config.NoAnonymous = c.Anonymous != nil && !*c.Anonymous
	}
	if slices.Contains(b.config.Authorization.Modes, modes.AlwaysAllow) && !config.NoAnonymous {
		if configured {
			// The file has the last word, as in kube-apiserver.
			b.log.Warn("the authorization mode AlwaysAllow lets anonymous requests do everything, where the authentication configuration allows any",
				"file", c.ConfigFile, "paths", paths)
		} else {
			// AlwaysAllow allows everything to every user, so at least the users must be known.
			b.log.Warn("anonymous requests are refused, because the authorization mode AlwaysAllow would let them do everything")
			config.NoAnonymous = true
		}
	}
	return authn.New(config), nil
}

// openRemote returns the remote authenticators of tokens, or nil.
func (b *built) openRemote(audiences []string) (*token.Remote, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	c := remoteTokens(&b.config.Authentication)
	c.Audiences, c.Own, c.ServerID = audiences, b.host.Tokens.Issuers(), identity.Name(host)
	c.Metrics, c.Log = b.host.Metrics, b.log
	if b.config.Egress.ConfigFile != "" {
		c.Dial = b.host.Egress.Selected(egress.ControlPlane)
		c.Egress = func(kind string) token.Dial { return b.host.Egress.Selected(egress.Purpose(kind)) }
	}
	remote, err := token.Open(c)
	if err != nil || remote == nil {
		return nil, err
	}
	b.libraries = append(b.libraries, token.LibraryMetrics()...)
	b.onStop(func() error { remote.Close(); return nil })
	b.background(func(ctx context.Context) error { remote.Run(ctx); return nil })
	return remote, nil
}

// frontProxy returns the settings of front proxies, or nil.
func frontProxy(c *config.RequestHeader) *authn.FrontProxy {
	if c.ClientCAFile == "" {
		return nil
	}
	return &authn.FrontProxy{
		AllowedNames: c.AllowedNames, UsernameHeaders: c.UsernameHeaders, UIDHeaders: c.UIDHeaders,
		GroupHeaders: c.GroupHeaders, ExtraPrefixes: c.ExtraHeadersPrefix,
	}
}

// remoteTokens returns the settings of the issuers and the webhook for tokens.
func remoteTokens(c *config.Authentication) token.Config {
	return token.Config{
		File: c.ConfigFile, OIDC: token.OIDC(c.OIDC), WebhookFile: c.Webhook.ConfigFile,
		WebhookVersion: c.Webhook.Version, WebhookTTL: max(c.Webhook.CacheTTL, 0),
	}
}
