package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/modes"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Authorization configures the permissions of users.
type Authorization struct {
	// Modes decide one after another until a mode allows or denies: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny.
	// The default is Node and RBAC. AlwaysAllow refuses anonymous requests, unless the file of Authentication allows
	// some. Members of system:masters may do everything, before any mode decides.
	Modes []string
	// PolicyFile holds the policies of the mode ABAC, one JSON object in each line.
	PolicyFile string
	// WebhookConfigFile has the URL of the webhook of the mode Webhook, in the format of a kubeconfig.
	WebhookConfigFile string
	// WebhookVersion is the version of SubjectAccessReview in requests to the webhook, v1beta1 by default.
	WebhookVersion string
	// WebhookCacheAuthorizedTTL and WebhookCacheUnauthorizedTTL are how long answers of the webhook are kept, 5 minutes
	// and 30 seconds if zero; less than zero is not at all.
	WebhookCacheAuthorizedTTL, WebhookCacheUnauthorizedTTL time.Duration
	// ConfigFile is an AuthorizationConfiguration (apiserver.config.k8s.io/v1), which replaces the fields above except
	// PolicyFile. It is read again when it changes.
	ConfigFile string
	// ConstrainedImpersonation permits impersonation for single actions: Kubernetes' feature gate of that name. Nil
	// means true, unless a release before 1.36 is emulated.
	ConstrainedImpersonation *bool
	// NodeAudienceRestriction gives kubelets only tokens for audiences of the pod's volumes, unless a role allows
	// others: Kubernetes' feature gate ServiceAccountNodeAudienceRestriction. Nil means true.
	NodeAudienceRestriction *bool
	// ClaimStatusAuthorization requires the permission to bind claims, or to act for the device's driver, for writing
	// the status of a ResourceClaim: Kubernetes' feature gate DRAResourceClaimGranularStatusAuthorization. Nil means
	// true, unless a release before 1.36 is emulated.
	ClaimStatusAuthorization *bool
}

// The defaults of authorization webhooks are kube-apiserver's.
const (
	// defaultReviewVersion is the version of SubjectAccessReviews and TokenReviews in requests to webhooks.
	defaultReviewVersion   = "v1beta1"
	defaultAuthorizedTTL   = 5 * time.Minute
	defaultUnauthorizedTTL = 30 * time.Second
)

// gates returns the feature gates that are on by default.
func (c *Authorization) gates() map[string]any {
	return map[string]any{
		"ConstrainedImpersonation":                    &c.ConstrainedImpersonation,
		"ServiceAccountNodeAudienceRestriction":       &c.NodeAudienceRestriction,
		"DRAResourceClaimGranularStatusAuthorization": &c.ClaimStatusAuthorization,
	}
}

func (c *Authorization) settings() []Setting {
	return []Setting{
		{
			Name: "authorization-mode",
			Help: "authorization modes, in order: " + strings.Join(modes.All(), ", "),
			// The default depends on the command, and is empty with --authorization-config.
			Value: &c.Modes,
		},
		{
			Name: "authorization-policy-file", Help: "policies of the mode ABAC, a JSON object in each line",
			Value: &c.PolicyFile,
		},
		{
			Name: "authorization-webhook-config-file",
			Help: "address of the webhook of the mode Webhook, in the format of a kubeconfig", Value: &c.WebhookConfigFile,
		},
		{
			Name: "authorization-webhook-version", Help: "version of SubjectAccessReview in requests to the webhook",
			Value: &c.WebhookVersion, Default: defaultReviewVersion,
		},
		{
			Name: "authorization-webhook-cache-authorized-ttl",
			Help: "how long to cache requests that the webhook allowed; 0 disables the cache", Value: &c.WebhookCacheAuthorizedTTL,
			Default: defaultAuthorizedTTL, Form: Bounded,
		},
		{
			Name:  "authorization-webhook-cache-unauthorized-ttl",
			Help:  "how long to cache requests that the webhook did not allow; 0 disables the cache",
			Value: &c.WebhookCacheUnauthorizedTTL, Default: defaultUnauthorizedTTL, Form: Bounded,
		},
		{
			Name:  "authorization-config",
			Help:  "AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*",
			Value: &c.ConfigFile,
		},
	}
}

func (c *Authorization) setDefaults(e kinds.Emulation) {
	c.ConstrainedImpersonation = cmp.Or(c.ConstrainedImpersonation, new(e.AtLeast(36)))
	c.NodeAudienceRestriction = cmp.Or(c.NodeAudienceRestriction, new(true))
	c.ClaimStatusAuthorization = cmp.Or(c.ClaimStatusAuthorization, new(e.AtLeast(36)))
	if len(c.Modes) == 0 && c.ConfigFile == "" {
		c.Modes = []string{modes.Node, modes.RBAC}
	}
	c.WebhookVersion = cmp.Or(c.WebhookVersion, defaultReviewVersion)
	c.WebhookCacheAuthorizedTTL = cmp.Or(c.WebhookCacheAuthorizedTTL, defaultAuthorizedTTL)
	c.WebhookCacheUnauthorizedTTL = cmp.Or(c.WebhookCacheUnauthorizedTTL, defaultUnauthorizedTTL)
}

// validate checks the configuration before its defaults. The contents of files are checked when they are read.
func (c *Authorization) validate(p *problems) {
	if c.ConfigFile != "" {
		if len(c.Modes) > 0 || c.WebhookConfigFile != "" ||
			c.WebhookVersion != "" && c.WebhookVersion != defaultReviewVersion ||
			c.WebhookCacheAuthorizedTTL != 0 || c.WebhookCacheUnauthorizedTTL != 0 {
			p.add("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* " +
				"flags are defined: drop one of them")
		}
		return
	}
	seen := map[string]bool{}
	for _, mode := range c.Modes {
		if !slices.Contains(modes.All(), mode) {
			p.add("--authorization-mode %q is not a valid mode: use %s", mode, strings.Join(modes.All(), ", "))
		}
		seen[mode] = true
	}
	if len(seen) < len(c.Modes) {
		p.add("--authorization-mode %q has mode specified more than once: drop it in one place", c.Modes)
	}
	c.validateFiles(p, seen)
}

// validateFiles checks that the modes have the files that they need, and no others are given.
func (c *Authorization) validateFiles(p *problems, seen map[string]bool) {
	switch {
	case seen[modes.ABAC] && c.PolicyFile == "":
		p.add("--authorization-mode ABAC's authorization policy file not passed: add --authorization-policy-file")
	case !seen[modes.ABAC] && c.PolicyFile != "":
		p.add("cannot specify --authorization-policy-file without mode ABAC: add it to --authorization-mode")
	}
	switch {
	case seen[modes.Webhook] && c.WebhookConfigFile == "":
		p.add("--authorization-mode Webhook's authorization config file not passed: " +
			"add --authorization-webhook-config-file")
	case !seen[modes.Webhook] && c.WebhookConfigFile != "":
		p.add("cannot specify --authorization-webhook-config-file without mode Webhook: " +
			"add it to --authorization-mode")
	}
}
