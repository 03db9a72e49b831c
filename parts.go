package bowsprit

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/admission/policystatus"
	"github.com/bowsprit/bowsprit/internal/kinds/auth/review"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates/csrmetrics"
	"github.com/bowsprit/bowsprit/internal/kinds/coordination/candidates"
	"github.com/bowsprit/bowsprit/internal/kinds/coordination/identity"
	"github.com/bowsprit/bowsprit/internal/kinds/core/accounts"
	"github.com/bowsprit/bowsprit/internal/kinds/core/componentstatus"
	"github.com/bowsprit/bowsprit/internal/kinds/core/podgc"
	"github.com/bowsprit/bowsprit/internal/kinds/core/quota"
	"github.com/bowsprit/bowsprit/internal/kinds/core/subresource"
	"github.com/bowsprit/bowsprit/internal/kinds/network/address"
	"github.com/bowsprit/bowsprit/internal/kinds/network/service"
	"github.com/bowsprit/bowsprit/internal/kinds/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/scheduling/systemclass"
	"github.com/bowsprit/bowsprit/internal/kinds/storage/protection"
	"github.com/bowsprit/bowsprit/internal/part"
)

// parts are what a server has beside the core, in the order in which it starts, and within one position of the
// admission chain the order in which plugins are asked. This is the one list: a part is added by a line here.
//
// It is also asked which names there are, of plugins and controllers, so it must do nothing but make values.
func (c *Config) parts() []part.Part {
	all := []part.Part{
		builtinKinds(c),
		plugin.Part(c.pluginSettings()),
		embeddedPlugins(c.Admission.Plugins),
		admissionPolicies(),
		admissionWebhooks(),
		policystatus.Part(),
		quota.Part(),
		review.Part(c.ServiceAccounts.MaxTokenExpiration),
		accounts.Part(),
		systemclass.Part(),
		address.Part(c.Services.ranges(), c.Services.ports()),
		service.Part(service.Settings{Ranges: c.Services.ranges(), Advertised: c.advertised}),
		identity.Part(c.advertised),
		protection.Part(),
		podgc.Part(),
		componentstatus.Part(),
		subresource.Part(),
		csrmetrics.Part(),
		storageMetrics(),
		statusPages(c.Flags),
		profiles(),
		snapshots(),
		tokenKeys(c.ServiceAccounts.JWKSURI),
	}
	if c.API.CoordinatedLeaderElection {
		all = append(all, candidates.Part(c.Coordination.times()))
	}
	return all
}

// builtinKinds brings the kinds of Kubernetes.
func builtinKinds(c *Config) part.Part {
	return part.Part{Name: "built-in kinds",
		Resources: func(h *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			resources = append(resources, kinds.Resources()...)
			if c.Limits.EventTTL != 0 {
				kinds.KeepEvents(resources, max(c.Limits.EventTTL, 0))
			}
			if c.API.CoordinatedLeaderElection {
				kinds.CoordinateLeases(resources)
			}
			if absent := kinds.RuntimeConfig(c.API.RuntimeConfig).Apply(resources); len(absent) > 0 {
				h.Log.Warn("--runtime-config asks for what is not here", "versions", absent)
			}
			return resources
		}}
}

// pluginSettings are what the configuration says of the admission plugins about single kinds.
func (c *Config) pluginSettings() plugin.Settings {
	s := plugin.Settings{
		NotReadySeconds: c.Limits.NotReadyTolerationSeconds, UnreachableSeconds: c.Limits.UnreachableTolerationSeconds,
	}
	if c.Controllers.runs(accounts.Controller) {
		s.AccountPatience = accountPatience
	}
	return s
}
