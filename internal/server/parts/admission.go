package parts

import (
	"context"

	"github.com/google/uuid"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/admit/hook"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// lifecycle is the only plugin of the core: it refuses objects in namespaces that do not exist or are being deleted.
func lifecycle(behind *part.Behind) part.Part {
	return part.Part{Name: "core", Admission: []part.Plugin{{
		Name: admit.Lifecycle{}.Name(), At: part.AtFirst,
		New: func(h *part.Host) (admit.Plugin, error) {
			if behind != nil {
				return behind.Lifecycle(h), nil
			}
			return admit.Lifecycle{View: h.View}, nil
		},
	}}}
}

// Plugins returns the admission plugins of the core and of parts, in the order in which they run. behind connects the
// server to the server in front of it, or is nil.
func Plugins(parts []part.Part, behind *part.Behind) []part.Plugin {
	return part.Chain(append([]part.Part{lifecycle(behind)}, parts...))
}

// admissionPolicies adds the policies that are objects, or in files, written in CEL.
func admissionPolicies(c *config.Config) part.Part {
	config := func(h *part.Host) policy.Config {
		return policy.Config{
			View: h.View, Catalog: h.Catalog, Authz: h.Authorizer, Log: h.Log, Metrics: h.AdmissionMetrics,
			Read: func(ctx context.Context, r *catalog.Resource, v *catalog.Version,
				e *watchcache.Entry) (map[string]any, error) {
				return h.Verbs.Read(ctx, r, v, e)
			},
		}
	}
	return part.Part{Name: "admission policies", Admission: []part.Plugin{
		{
			Name: (*policy.Mutating)(nil).Name(), At: part.Mutating,
			New: func(h *part.Host) (admit.Plugin, error) {
				if !obeysMutatingPolicies(c, h) {
					return nil, nil
				}
				files, err := manifests(h, (*policy.Mutating)(nil).Name(), h.Admission.MutatingPolicies,
					manifest.MutatingPolicies)
				return policy.NewMutating(config(h), files), err
			},
		},
		{
			Name: (*policy.Validating)(nil).Name(), At: part.Validating,
			New: func(h *part.Host) (admit.Plugin, error) {
				files, err := manifests(h, (*policy.Validating)(nil).Name(), h.Admission.ValidatingPolicies,
					manifest.ValidatingPolicies)
				return policy.NewValidating(config(h), files), err
			},
		},
	}}
}

// obeysMutatingPolicies reports whether MutatingAdmissionPolicies have an effect. An emulated release may lack the
// kind, and then stored policies come from a newer server.
func obeysMutatingPolicies(c *config.Config, h *part.Host) bool {
	r := h.Catalog.Snapshot().Resource("admissionregistration.k8s.io", "mutatingadmissionpolicies")
	return r != nil && r.Served || !config.Emulated(&c.Emulation).Emulates()
}

// admissionWebhooks adds the webhooks that are objects, or in files.
func admissionWebhooks(settings *config.Config) part.Part {
	reviews := !config.Emulated(&settings.Emulation).Has(kinds.ReviewsWithoutWebhooks, settings.API.Features)
	configure := func(h *part.Host, plugin string, configured configuration.Webhooks,
		open func(manifest.Config) (*manifest.Source[manifest.Webhooks], error)) (c hook.Config, err error) {
		c = hook.Config{
			View: h.View, Authz: h.Authorizer, Client: h.Webhooks, NewUID: uuid.NewString, Log: h.Log,
			Metrics: h.AdmissionMetrics, Reviews: reviews,
		}
		if configured.Kubeconfig != "" {
			if c.Credentials, err = webhook.ReadCredentials(configured.Kubeconfig); err != nil {
				return c, err
			}
		}
		c.Manifests, err = manifests(h, plugin, configured.Manifests, open)
		return c, err
	}
	return part.Part{Name: "admission webhooks", Admission: []part.Plugin{
		{
			Name: (*hook.Mutating)(nil).Name(), At: part.Mutating,
			New: func(h *part.Host) (admit.Plugin, error) {
				c, err := configure(h, (*hook.Mutating)(nil).Name(), h.Admission.MutatingWebhooks,
					manifest.MutatingWebhooks)
				return hook.NewMutating(c), err
			},
		},
		{
			Name: (*hook.Validating)(nil).Name(), At: part.Validating,
			New: func(h *part.Host) (admit.Plugin, error) {
				c, err := configure(h, (*hook.Validating)(nil).Name(), h.Admission.ValidatingWebhooks,
					manifest.ValidatingWebhooks)
				return hook.NewValidating(c), err
			},
		},
	}}
}

// manifests opens a plugin's folder of manifests, and follows its changes. It returns nil without a folder.
func manifests[T any](h *part.Host, plugin, folder string,
	open func(manifest.Config) (*manifest.Source[T], error)) (*manifest.Source[T], error) {
	if folder == "" {
		return nil, nil
	}
	s, err := open(manifest.Config{
		Folder: folder, Plugin: plugin, Now: h.Now, Log: h.Log, Metrics: h.ManifestMetrics,
	})
	if err == nil {
		h.Background(func(ctx context.Context) error { s.Run(ctx); return nil })
	}
	return s, err
}
