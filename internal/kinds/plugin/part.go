package plugin

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Settings are what a server's configuration says of the plugins. The zero value is kube's default.
type Settings struct {
	// AccountPatience is how long a pod waits for the default service account of its namespace, 1.5 seconds if zero.
	AccountPatience time.Duration
	// NotReadySeconds and UnreachableSeconds are how long pods stay on nodes that are not ready or cannot be reached,
	// 300 if nil.
	NotReadySeconds, UnreachableSeconds *int64
}

// Part brings all plugins of this package.
func Part(s Settings) part.Part {
	p := part.Part{Name: "admission plugins about single kinds"}
	for _, k := range known {
		p.Admission = append(p.Admission,
			part.Plugin{Name: k.name, At: part.AboutKinds, New: func(h *part.Host) (admit.Plugin, error) {
				return &Plugin{k.name, k.make(Config{
					View: h.View, Authz: h.Authorizer, NewSuffix: part.NameSuffix, AccountPatience: s.AccountPatience,
					PodSecurity: h.Admission.PodSecurity, NotReadySeconds: s.NotReadySeconds,
					UnreachableSeconds: s.UnreachableSeconds,
				})}, nil
			}})
	}
	return p
}
