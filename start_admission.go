package bowsprit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/admit/hook"
	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// accountPatience is how long a pod waits for the service account that a controller of this process, or of another
// replica, is about to make.
const accountPatience = 10 * time.Second

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

// admissionChain returns the plugins of the core and of parts, in the order in which they run.
func admissionChain(parts []part.Part, behind *part.Behind) []part.Plugin {
	return part.Chain(append([]part.Part{lifecycle(behind)}, parts...))
}

// buildAdmission makes the chain of enabled plugins. Errors are about their configuration.
func (p *process) buildAdmission(context.Context) error {
	config, err := p.admissionConfig()
	if err != nil {
		return err
	}
	p.host.Admission, p.host.AdmissionMetrics = config, admit.NewMetrics(p.host.Metrics)
	p.admission = admit.Chain{Metrics: p.host.AdmissionMetrics}
	emulated, features := emulated(&p.config.Emulation), p.config.API.Features
	for _, wanted := range admissionChain(p.parts, p.behind) {
		if slices.Contains(p.config.Admission.Disabled, wanted.Name) || emulated.LacksPlugin(wanted.Name, features) {
			continue
		}
		plugin, err := wanted.New(&p.host)
		if err != nil {
			return fmt.Errorf("--admission-control-config-file: %w", err)
		}
		if plugin != nil {
			p.admission.Plugins = append(p.admission.Plugins, plugin)
		}
	}
	return nil
}

// admissionConfig returns the configuration of plugins in the user's file.
func (p *process) admissionConfig() (configuration.Configuration, error) {
	if p.config.Admission.ConfigFile == "" {
		return configuration.Configuration{}, nil
	}
	c, err := configuration.Read(p.config.Admission.ConfigFile)
	if err != nil {
		return c, fmt.Errorf("--admission-control-config-file: %w", err)
	}
	if len(c.Unused) > 0 {
		p.log.Warn("--admission-control-config-file configures what cannot be configured here", "plugins", c.Unused)
	}
	return c, nil
}

// embeddedPlugins brings the plugins of the program that embeds the server.
func embeddedPlugins(plugins []AdmissionPlugin) part.Part {
	p := part.Part{Name: "embedded admission plugins"}
	for _, own := range plugins {
		p.Admission = append(p.Admission,
			part.Plugin{Name: own.Name, At: part.AboutKinds, New: func(*part.Host) (admit.Plugin, error) {
				return embedded{own}, nil
			}})
	}
	return p
}

// admissionPolicies adds the policies that are objects, written in CEL.
func admissionPolicies(c *Config) part.Part {
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
				return policy.NewMutating(config(h)), nil
			},
		},
		{
			Name: (*policy.Validating)(nil).Name(), At: part.Validating,
			New: func(h *part.Host) (admit.Plugin, error) { return policy.NewValidating(config(h)), nil },
		},
	}}
}

// obeysMutatingPolicies reports whether MutatingAdmissionPolicies have an effect. An emulated release may lack the
// kind, and then stored policies come from a newer server.
func obeysMutatingPolicies(c *Config, h *part.Host) bool {
	r := h.Catalog.Snapshot().Resource("admissionregistration.k8s.io", "mutatingadmissionpolicies")
	return r != nil && r.Served || !emulated(&c.Emulation).Emulates()
}

// admissionWebhooks adds the webhooks that are objects.
func admissionWebhooks() part.Part {
	config := func(h *part.Host, kubeconfig string) (hook.Config, error) {
		c := hook.Config{
			View: h.View, Authz: h.Authorizer, Client: h.Webhooks, NewUID: uuid.NewString, Log: h.Log,
			Metrics: h.AdmissionMetrics,
		}
		if kubeconfig == "" {
			return c, nil
		}
		var err error
		c.Credentials, err = webhook.ReadCredentials(kubeconfig)
		return c, err
	}
	return part.Part{Name: "admission webhooks", Admission: []part.Plugin{
		{
			Name: (*hook.Mutating)(nil).Name(), At: part.Mutating,
			New: func(h *part.Host) (admit.Plugin, error) {
				c, err := config(h, h.Admission.MutatingKubeconfig)
				return hook.NewMutating(c), err
			},
		},
		{
			Name: (*hook.Validating)(nil).Name(), At: part.Validating,
			New: func(h *part.Host) (admit.Plugin, error) {
				c, err := config(h, h.Admission.ValidatingKubeconfig)
				return hook.NewValidating(c), err
			},
		},
	}}
}
