// Package plugin has the admission plugins of Kubernetes that are about a few built-in kinds each: they fill in what an
// administrator has laid down for all objects of a kind (classes, limits, accounts), and refuse what goes against it.
//
// It stands in the chain between the namespace's lifecycle and the policies and webhooks that are objects. A Plugin is
// data: which writes it is about, and what it does then. Each has a file of its own, named after it.
//
// What they look up (classes, service accounts, limits) they read from the view. Writes of those kinds return when the
// view shows them, so a write counts for every request after it on this server; what the view does not know is looked
// for once more after catching up, since it may have been made on another replica a moment ago.
//
// Plugins are safe for concurrent use.
package plugin

import (
	"context"
	"maps"
	"slices"
	"time"

	podsecurity "k8s.io/pod-security-admission/admission/api"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Config is what plugins work with.
type Config struct {
	View *watchcache.View
	// Authz decides who may approve and sign requests for certificates.
	Authz authz.Authorizer
	// NewSuffix returns the random end of a generated name, five letters.
	NewSuffix func() string
	// AccountPatience is how long a pod waits for the default service account of its namespace, 1.5 seconds if zero.
	AccountPatience time.Duration
	// PodSecurity is what the user's configuration says of the plugin of that name, nil for nothing. It is valid.
	PodSecurity *podsecurity.PodSecurityConfiguration
	// NotReadySeconds and UnreachableSeconds are how long pods stay on nodes that are not ready or cannot be reached,
	// 300 if nil.
	NotReadySeconds, UnreachableSeconds *int64
}

// Plugin is one plugin.
type Plugin struct {
	name  string
	rules []rule
}

// rule says what a plugin does with one kind of write. A nil function lets it pass.
type rule struct {
	group, plural string
	subresource   string
	operations    []admit.Operation
	mutate        step
	validate      step
}

// step is one half of a plugin's work. It changes the object by a.Edit or a.Replace.
type step func(ctx context.Context, a *admit.Attributes) error

// What rules are about.
var (
	creates = []admit.Operation{admit.Create}
	updates = []admit.Operation{admit.Update}
	writes  = []admit.Operation{admit.Create, admit.Update}
)

// known are all plugins, in kube's order (AllOrderedPlugins in k8s.io/kubernetes/pkg/kubeapiserver/options).
var known = []struct {
	name string
	make func(Config) []rule
}{
	{"LimitRanger", limitRanger},
	{"ServiceAccount", serviceAccount},
	{"TaintNodesByCondition", nodeTaint},
	{"PodSecurity", podSecurity},
	{"Priority", priority},
	{"DefaultTolerationSeconds", tolerationSeconds},
	{"DefaultStorageClass", storageClass},
	{"StorageObjectInUseProtection", storageProtection},
	{"PersistentVolumeClaimResize", claimResize},
	{"RuntimeClass", runtimeClass},
	{"CertificateApproval", certificateApproval},
	{"CertificateSigning", certificateSigning},
	{"CertificateSubjectRestriction", certificateSubject},
	{"DefaultIngressClass", ingressClass},
	{"NodeDeclaredFeatureValidator", declaredFeature},
	{"PodResizeValidator", podResize},
	{"PodTopologyLabels", podTopology},
}

// Names returns the names of all plugins, which are kube's, in the order in which they are asked.
func Names() []string {
	var out []string
	for _, p := range known {
		out = append(out, p.name)
	}
	return out
}

// All returns all plugins in the order in which they are asked.
func All(c Config) []admit.Plugin {
	var out []admit.Plugin
	for _, p := range known {
		out = append(out, &Plugin{p.name, p.make(c)})
	}
	return out
}

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
		if p.rules[i].plural == r.Plural && p.rules[i].group == r.Group {
			return true
		}
	}
	return false
}

// Mutate changes the object or refuses the write.
func (p *Plugin) Mutate(ctx context.Context, a *admit.Attributes) error {
	if r := p.rule(a); r != nil && r.mutate != nil {
		return r.mutate(ctx, a)
	}
	return nil
}

// Validate refuses the write or lets it pass.
func (p *Plugin) Validate(ctx context.Context, a *admit.Attributes) error {
	if r := p.rule(a); r != nil && r.validate != nil {
		return r.validate(ctx, a)
	}
	return nil
}

// rule returns the rule about a write; no two are about the same one.
func (p *Plugin) rule(a *admit.Attributes) *rule {
	for i := range p.rules {
		r := &p.rules[i]
		if r.plural == a.Resource.Plural && r.group == a.Resource.Group && r.subresource == a.Subresource &&
			slices.Contains(r.operations, a.Operation) {
			return r
		}
	}
	return nil
}

type object = admit.Object

// with returns a copy of obj that has a value under a name.
func with(obj object, name string, value any) object {
	out := make(object, len(obj)+1)
	maps.Copy(out, obj)
	out[name] = value
	return out
}
