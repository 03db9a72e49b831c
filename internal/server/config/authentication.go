package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Authentication configures how clients are authenticated.
type Authentication struct {
	// ClientCAFile holds further authorities of client certificates.
	ClientCAFile string
	// RequestHeader configures the proxies that name users in headers.
	RequestHeader RequestHeader
	// TokenAuthFile holds static bearer tokens: lines of token,user,uid,"group1,group2".
	TokenAuthFile string
	// BootstrapTokens lets nodes join with tokens in secrets of the type bootstrap.kubernetes.io/token in kube-system,
	// and publishes the server's URL and authority in the ConfigMap kube-public/cluster-info, which everyone may read.
	// The command serve enables it.
	BootstrapTokens bool
	// OIDC is one issuer of OpenID Connect. ConfigFile is an AuthenticationConfiguration (apiserver.config.k8s.io/v1),
	// which can name several issuers, and selects the allowed anonymous requests. It is read again when it changes.
	OIDC       OIDC
	ConfigFile string // see OIDC
	// Webhook reviews tokens that no other authenticator accepts.
	Webhook TokenWebhook
	// Anonymous false refuses requests without a client certificate or token (401), even health checks; nil means true,
	// or the setting in ConfigFile.
	Anonymous *bool
	// NoOwnClients rejects client certificates of the server's own authority, including its administrator's, and does
	// not publish that authority to other servers. Then ClientCAFile has all the authorities, as in kube-apiserver.
	NoOwnClients bool
}

// RequestHeader configures the proxies that name users in headers. They authenticate clients themselves and
// present a certificate of their own authority.
type RequestHeader struct {
	// ClientCAFile holds the authorities of the proxies' certificates; without it the server accepts no such proxies.
	ClientCAFile string
	// AllowedNames are the common names of the proxies' certificates; empty allows all that the authorities signed.
	AllowedNames []string
	// UsernameHeaders, UIDHeaders and GroupHeaders are headers such as X-Remote-User, and ExtraHeadersPrefix beginnings
	// of headers such as X-Remote-Extra-.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeadersPrefix []string
}

// OIDC is an issuer of tokens by OpenID Connect.
type OIDC struct {
	IssuerURL, ClientID string // both, or neither
	// CAFile holds the authorities of the issuer's certificate; the default is the host's authorities.
	CAFile string
	// UsernameClaim is the claim with the user's name, "sub" by default. UsernamePrefix precedes the name. Its default
	// is the issuer's URL and "#", except for the claim "email"; "-" means no prefix.
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string            // the claim that lists the user's groups, and a prefix for each
	SigningAlgs                   []string          // RS256 if empty
	RequiredClaims                map[string]string // required values of further claims
}

// TokenWebhook configures a webhook that reviews tokens.
type TokenWebhook struct {
	// ConfigFile has its URL, in the format of a kubeconfig.
	ConfigFile string
	// Version is the version of TokenReview in its requests, v1beta1 by default.
	Version string
	// CacheTTL is how long its answers are kept, 2 minutes if zero; less than zero is not at all.
	CacheTTL time.Duration
}

// The defaults of authentication are kube-apiserver's.
const (
	defaultTokenTTL      = 2 * time.Minute
	defaultUsernameClaim = "sub"
	defaultSigningAlg    = "RS256"
)

func (c *Authentication) setDefaults() {
	c.Webhook.Version = cmp.Or(c.Webhook.Version, defaultReviewVersion)
	c.Webhook.CacheTTL = cmp.Or(c.Webhook.CacheTTL, defaultTokenTTL)
	c.OIDC.UsernameClaim = cmp.Or(c.OIDC.UsernameClaim, defaultUsernameClaim)
	if len(c.OIDC.SigningAlgs) == 0 {
		c.OIDC.SigningAlgs = []string{defaultSigningAlg}
	}
}

func (c *Authentication) settings() []Setting {
	return slices.Concat([]Setting{{
		Name: "client-ca-file", Help: "further authorities of client certificates, PEM",
		Value: &c.ClientCAFile,
	}}, c.RequestHeader.settings(), c.tokenSettings(), c.OIDC.settings(), []Setting{{
		Name:  "anonymous-auth",
		Help:  "accept requests without a certificate or token, as from system:anonymous; not with the mode AlwaysAllow",
		Value: &c.Anonymous,
	}})
}

func (c *RequestHeader) settings() []Setting {
	return []Setting{
		{
			Name:  "requestheader-client-ca-file",
			Help:  "authorities of the certificates of front proxies, which name users in headers, PEM",
			Value: &c.ClientCAFile,
		},
		{
			Name:  "requestheader-allowed-names",
			Help:  "allowed common names in the certificates of front proxies (default: any)",
			Value: &c.AllowedNames,
		},
		{
			Name: "requestheader-username-headers", Help: "headers of front proxies with the user, such as X-Remote-User",
			Value: &c.UsernameHeaders,
		},
		{
			Name: "requestheader-uid-headers", Help: "headers of front proxies with the UID, such as X-Remote-Uid",
			Value: &c.UIDHeaders,
		},
		{
			Name: "requestheader-group-headers", Help: "headers of front proxies with groups, such as X-Remote-Group",
			Value: &c.GroupHeaders,
		},
		{
			Name:  "requestheader-extra-headers-prefix",
			Help:  "prefixes of headers of front proxies with extra fields of the user, such as X-Remote-Extra-",
			Value: &c.ExtraHeadersPrefix,
		},
	}
}

func (c *Authentication) tokenSettings() []Setting {
	return []Setting{
		{
			Name: "token-auth-file", Help: `static bearer tokens, lines of token,user,uid,"group1,group2"`,
			Value: &c.TokenAuthFile,
		},
		{
			Name:  "enable-bootstrap-token-auth",
			Help:  "let nodes join by tokens in secrets of type bootstrap.kubernetes.io/token in kube-system",
			Value: &c.BootstrapTokens, Default: c.BootstrapTokens,
		},
		{
			Name:  "authentication-config",
			Help:  "file with an AuthenticationConfiguration: issuers of tokens, and allowed anonymous requests",
			Value: &c.ConfigFile,
		},
		{
			Name: "authentication-token-webhook-config-file",
			Help: "address of the webhook for bearer tokens, in the format of a kubeconfig", Value: &c.Webhook.ConfigFile,
		},
		{
			Name: "authentication-token-webhook-version", Help: "version of TokenReview in requests to the webhook",
			Value: &c.Webhook.Version, Default: defaultReviewVersion,
		},
		{
			Name: "authentication-token-webhook-cache-ttl", Help: "how long responses of the webhook are cached; 0 disables the cache",
			Value: &c.Webhook.CacheTTL, Default: defaultTokenTTL, Form: Bounded,
		},
	}
}

func (c *OIDC) settings() []Setting {
	return []Setting{
		{Name: "oidc-issuer-url", Help: "issuer of tokens by OpenID Connect, https://...", Value: &c.IssuerURL},
		{Name: "oidc-client-id", Help: "required audience of the issuer's tokens", Value: &c.ClientID},
		{Name: "oidc-ca-file", Help: "authorities of the issuer's certificate, PEM (default: the host's)", Value: &c.CAFile},
		{
			Name: "oidc-username-claim", Help: "claim that is the user's name", Value: &c.UsernameClaim,
			Default: defaultUsernameClaim,
		},
		{
			Name:  "oidc-username-prefix",
			Help:  "prefix of user names; - for none (default: the issuer and #, except for the claim email)",
			Value: &c.UsernamePrefix,
		},
		{Name: "oidc-groups-claim", Help: "claim that lists the user's groups", Value: &c.GroupsClaim},
		{Name: "oidc-groups-prefix", Help: "prefix of group names", Value: &c.GroupsPrefix},
		{
			Name: "oidc-signing-algs", Help: "algorithms of the issuer's signatures", Value: &c.SigningAlgs,
			Default: []string{defaultSigningAlg},
		},
		{
			Name: "oidc-required-claim", Help: "key=value: claim that tokens must have; may be repeated",
			Value: &c.RequiredClaims, Form: Repeated,
		},
	}
}

// used reports whether a flag about the issuer is given.
func (c *OIDC) used() bool {
	return c.IssuerURL != "" || c.ClientID != "" || c.CAFile != "" || c.UsernamePrefix != "" || c.GroupsClaim != "" ||
		c.GroupsPrefix != "" || len(c.RequiredClaims) > 0 ||
		c.UsernameClaim != "" && c.UsernameClaim != defaultUsernameClaim ||
		len(c.SigningAlgs) > 0 && !slices.Equal(c.SigningAlgs, []string{defaultSigningAlg})
}

func (c *Authentication) validate(p *problems) {
	switch {
	case c.ConfigFile != "" && c.OIDC.used():
		p.add("authentication-config file and oidc-* flags are mutually exclusive")
	case c.OIDC.used() && (c.OIDC.IssuerURL == "" || c.OIDC.ClientID == ""):
		p.add("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	c.RequestHeader.validate(p)
}

func (c *RequestHeader) validate(p *problems) {
	for _, list := range []struct {
		flag   string
		values []string
	}{
		{"requestheader-username-headers", c.UsernameHeaders}, {"requestheader-group-headers", c.GroupHeaders},
		{"requestheader-extra-headers-prefix", c.ExtraHeadersPrefix}, {"requestheader-allowed-names", c.AllowedNames},
		{"requestheader-uid-headers", c.UIDHeaders},
	} {
		if slices.ContainsFunc(list.values, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			p.add("empty value in %q", list.flag)
		}
	}
	if len(c.UIDHeaders) > 0 && !hasFold(c.UIDHeaders, "X-Remote-Uid") {
		p.add("--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work")
	}
}

// ProxyWarnings returns warnings about valid but dangerous settings.
func ProxyWarnings(c *RequestHeader) []string {
	var all []string
	for _, list := range []struct {
		flag, name, standard string
		values               []string
	}{
		{"--requestheader-username-headers", "header", "X-Remote-User", c.UsernameHeaders},
		{"--requestheader-group-headers", "header", "X-Remote-Group", c.GroupHeaders},
		{"--requestheader-extra-headers-prefix", "header prefix", "X-Remote-Extra-", c.ExtraHeadersPrefix},
	} {
		if len(list.values) > 0 && !hasFold(list.values, list.standard) {
			all = append(all, list.flag+" is set without specifying the standard "+list.standard+" "+list.name+
				" - API aggregation will not work")
		}
	}
	return all
}

func hasFold(values []string, wanted string) bool {
	return slices.ContainsFunc(values, func(s string) bool { return strings.EqualFold(s, wanted) })
}

// validateIssuers checks the issuers of service accounts' tokens, with kube's texts.
func validateIssuers(p *problems, issuers []string) {
	for i, issuer := range issuers {
		if strings.Contains(issuer, ":") {
			if _, err := url.Parse(issuer); err != nil {
				p.add("service-account-issuer %q contained a ':' but was not a valid URL: %w", issuer, err)
				continue
			}
		}
		switch {
		case issuer == "":
			p.add("service-account-issuer should not be an empty string")
		case slices.Contains(issuers[:i], issuer):
			p.add("service-account-issuer %q is already specified", issuer)
		}
	}
}
