package bowsprit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/modes"
)

// AuthorizationConfig says what users may do.
type AuthorizationConfig struct {
	// Modes are asked one after another until one allows or denies: Node, RBAC, ABAC, Webhook, AlwaysAllow,
	// AlwaysDeny. None means Node and RBAC. AlwaysAllow refuses anonymous requests, unless the file of Authentication
	// says which there may be. Members of system:masters may do everything, before any mode is asked.
	Modes []string
	// PolicyFile holds the policies of the mode ABAC, one JSON object in each line.
	PolicyFile string
	// WebhookConfigFile says where the webhook of the mode Webhook is, in the format of a kubeconfig.
	WebhookConfigFile string
	// WebhookVersion is the version of SubjectAccessReview that the webhook is asked in, v1beta1 if empty.
	WebhookVersion string
	// WebhookCacheAuthorizedTTL and WebhookCacheUnauthorizedTTL are how long answers of the webhook are kept, 5 minutes
	// and 30 seconds if zero; less than zero is not at all.
	WebhookCacheAuthorizedTTL, WebhookCacheUnauthorizedTTL time.Duration
	// ConfigFile is an AuthorizationConfiguration (apiserver.config.k8s.io/v1), which says it instead of the fields
	// above but PolicyFile. It is read again when it changes.
	ConfigFile string
	// ConstrainedImpersonation lets those who may do one thing as another user do it: kube's feature gate of that name.
	// Nil is true, unless an older release is emulated.
	ConstrainedImpersonation *bool
	// NodeAudienceRestriction gives kubelets only tokens for audiences that volumes of the pod want, unless a role
	// allows others: kube's feature gate ServiceAccountNodeAudienceRestriction. Nil is true.
	NodeAudienceRestriction *bool
	// ClaimStatusAuthorization lets only those write the status of a ResourceClaim who may bind claims, or speak for
	// the driver of the device: kube's feature gate DRAResourceClaimGranularStatusAuthorization. Nil is true, unless an
	// older release is emulated.
	ClaimStatusAuthorization *bool
}

// on returns a setting, or what it is if nothing is said.
func on(set *bool, otherwise bool) bool {
	if set == nil {
		return otherwise
	}
	return *set
}

// constrainedImpersonation reports whether there is constrained impersonation.
func (c *Config) constrainedImpersonation() bool {
	return on(c.Authorization.ConstrainedImpersonation, !c.Emulation.read().Emulates())
}

// gates are the feature gates that are on if nothing is said.
func (c *AuthorizationConfig) gates() map[string]any {
	return map[string]any{
		"ConstrainedImpersonation":                    &c.ConstrainedImpersonation,
		"ServiceAccountNodeAudienceRestriction":       &c.NodeAudienceRestriction,
		"DRAResourceClaimGranularStatusAuthorization": &c.ClaimStatusAuthorization,
	}
}

func (c *AuthorizationConfig) settings() []Setting {
	return []Setting{
		{
			Name: "authorization-mode",
			Help: "who decides what users may do, in this order: " + strings.Join(modes.All(), ", "),
			// The default is not the same for all commands, and is none with --authorization-config.
			Value: &c.Modes,
		},
		{
			Name: "authorization-policy-file", Help: "policies of the mode ABAC, a JSON object in each line",
			Value: &c.PolicyFile,
		},
		{
			Name: "authorization-webhook-config-file",
			Help: "where the webhook of the mode Webhook is, in the format of a kubeconfig", Value: &c.WebhookConfigFile,
		},
		{
			Name: "authorization-webhook-version", Help: "version of SubjectAccessReview that the webhook is asked in",
			Value: &c.WebhookVersion, Default: "v1beta1",
		},
		{
			Name: "authorization-webhook-cache-authorized-ttl",
			Help: "how long to keep what the webhook allowed, 0 for not at all", Value: &c.WebhookCacheAuthorizedTTL,
			Default: 5 * time.Minute, Form: Bounded,
		},
		{
			Name:  "authorization-webhook-cache-unauthorized-ttl",
			Help:  "how long to keep what the webhook did not allow, 0 for not at all",
			Value: &c.WebhookCacheUnauthorizedTTL, Default: 30 * time.Second, Form: Bounded,
		},
		{
			Name:  "authorization-config",
			Help:  "AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*",
			Value: &c.ConfigFile,
		},
	}
}

func (c *AuthorizationConfig) setDefaults() {
	if len(c.Modes) == 0 && c.ConfigFile == "" {
		c.Modes = []string{modes.Node, modes.RBAC}
	}
	if c.WebhookVersion == "" {
		c.WebhookVersion = "v1beta1"
	}
	c.WebhookCacheAuthorizedTTL = cmp.Or(c.WebhookCacheAuthorizedTTL, 5*time.Minute)
	c.WebhookCacheUnauthorizedTTL = cmp.Or(c.WebhookCacheUnauthorizedTTL, 30*time.Second)
}

// validate is about the configuration before its defaults. What the files say is checked when they are read.
func (c *AuthorizationConfig) validate(p *problems) {
	if c.ConfigFile != "" {
		if len(c.Modes) > 0 || c.WebhookConfigFile != "" || c.WebhookVersion != "" && c.WebhookVersion != "v1beta1" ||
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
func (c *AuthorizationConfig) validateFiles(p *problems, seen map[string]bool) {
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
