package plugins

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Settings are the server's settings for the plugins. The zero value has Kubernetes' defaults.
type Settings struct {
	// AccountPatience is how long a pod waits for the default service account of its namespace; zero means 1.5 seconds.
	AccountPatience time.Duration
	// NotReadySeconds and UnreachableSeconds are how long pods stay on nodes that are not ready or unreachable; nil
	// means 300.
	NotReadySeconds, UnreachableSeconds *int64
	// AnyAudience lets kubelets request tokens of the pods on their nodes for any audience.
	AnyAudience bool
	// Features are the explicitly set feature gates, by Kubernetes' names.
	Features map[string]bool
}

// Part brings all plugins of the list.
func Part(s Settings) part.Part {
	p := part.Part{Name: "admission plugins about single kinds"}
	for _, k := range plugins {
		p.Admission = append(p.Admission,
			part.Plugin{Name: k.name, At: part.AboutKinds, New: func(h *part.Host) (admit.Plugin, error) {
				return plugin.New(k.name, k.make(plugin.Config{
					View: h.View, Authz: h.Authorizer, NewSuffix: part.NameSuffix, AccountPatience: s.AccountPatience,
					PodSecurity: h.Admission.PodSecurity, NotReadySeconds: s.NotReadySeconds,
					UnreachableSeconds: s.UnreachableSeconds, AnyAudience: s.AnyAudience, Features: s.Features,
					Metrics: h.Metrics,
				})), nil
			}})
	}
	return p
}
