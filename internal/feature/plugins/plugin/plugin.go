// Package plugin defines the parts of an admission plugin for single kinds. Such a plugin sets administrators' defaults
// on all objects of a kind (classes, limits, service accounts), and rejects objects that violate their settings.
//
// These plugins run after the namespace lifecycle and before policies and webhooks. A Plugin is data: the writes that
// it applies to, and its steps. The plugins of an API group stand in feature/plugins/<group>; package plugins lists all
// of them in order.
//
// Plugins look up classes, service accounts and limits in the view. A write of such an object returns when the view
// shows it, so the next request on this server already sees it. A lookup that finds nothing waits until the view has
// caught up with etcd and tries once more, because another replica may have written the object.
//
// Plugins are safe for concurrent use.
package plugin

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	podsecurity "k8s.io/pod-security-admission/admission/api"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Config is the environment of plugins.
type Config struct {
	View *watchcache.View
	// Authz authorizes the approval and signing of certificate requests, and kubelets' tokens for any audience.
	Authz authz.Authorizer
	// NewSuffix returns the random suffix of a generated name, five letters.
	NewSuffix func() string
	// AccountPatience is how long a pod waits for the default service account of its namespace, 1.5 seconds if zero.
	AccountPatience time.Duration
	// PodSecurity is the user's configuration of the plugin PodSecurity, nil for none. It is valid.
	PodSecurity *podsecurity.PodSecurityConfiguration
	// NotReadySeconds and UnreachableSeconds are how long pods stay on nodes that are not ready or unreachable; nil
	// means 300.
	NotReadySeconds, UnreachableSeconds *int64
	// AnyAudience lets kubelets request tokens of the pods on their nodes for any audience.
	AnyAudience bool
	// Features are the explicitly set feature gates, by Kubernetes' names.
	Features map[string]bool
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Plugin is an admission plugin.
type Plugin struct {
	name  string
	rules []Rule
}

// Rule is the behavior of a plugin for one kind of write. A nil function lets it pass.
type Rule struct {
	Group, Plural string
	Subresource   string // or AnySubresource
	Operations    []admit.Operation
	Mutate        Step
	Validate      Step
}

// Step is the mutating or validating half of a plugin. It changes the object by a.Edit or a.Replace.
type Step func(ctx context.Context, a *admit.Attributes) error

// AnySubresource is for rules about an object and all its subresources.
const AnySubresource = "*"

// Operations of rules.
var (
	Creates = []admit.Operation{admit.Create}
	Updates = []admit.Operation{admit.Update}
	Writes  = []admit.Operation{admit.Create, admit.Update}
)

// New returns a plugin.
func New(name string, rules []Rule) *Plugin { return &Plugin{name, rules} }

var (
	_ admit.Mutator   = (*Plugin)(nil)
	_ admit.Validator = (*Plugin)(nil)
	_ admit.Selective = (*Plugin)(nil)
)

// Name returns kube's name for the plugin.
func (p *Plugin) Name() string { return p.name }

// Concerns reports whether the plugin is about any write of a resource.
func (p *Plugin) Concerns(r *catalog.Resource) bool {
	if r.Custom() {
		return false
	}
	for i := range p.rules {
		if p.rules[i].Plural == r.Plural && p.rules[i].Group == r.Group {
			return true
		}
	}
	return false
}

// Mutate changes the object or refuses the write.
func (p *Plugin) Mutate(ctx context.Context, a *admit.Attributes) error {
	if r := p.rule(a); r != nil && r.Mutate != nil {
		return r.Mutate(ctx, a)
	}
	return nil
}

// Validate rejects the write or lets it pass.
func (p *Plugin) Validate(ctx context.Context, a *admit.Attributes) error {
	if r := p.rule(a); r != nil && r.Validate != nil {
		return r.Validate(ctx, a)
	}
	return nil
}

// rule returns the rule for a write; at most one rule matches.
func (p *Plugin) rule(a *admit.Attributes) *Rule {
	for i := range p.rules {
		r := &p.rules[i]
		if r.Plural == a.Resource.Plural && r.Group == a.Resource.Group &&
			(r.Subresource == a.Subresource || r.Subresource == AnySubresource) &&
			slices.Contains(r.Operations, a.Operation) {
			return r
		}
	}
	return nil
}

// With returns a copy of obj that has a value under a name.
func With(obj admit.Object, name string, value any) admit.Object {
	out := make(admit.Object, len(obj)+1)
	maps.Copy(out, obj)
	out[name] = value
	return out
}
