package parts

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/version"
)

// Behind returns the dependencies of an extension API server on the server in front of it, or nil for all other
// servers.
func Behind(c *config.Config) *part.Behind {
	for _, e := range c.Extensions {
		if b := brought(e).Behind; b != nil {
			return b
		}
	}
	return nil
}

// brought returns the additions of an extension.
func brought(e config.Extension) part.Extension {
	b, _ := config.Content(e).(part.Extension) // the makers make nothing else
	return b
}

// extensions brings the kinds of Extensions.
func extensions(c *config.Config) []part.Part {
	var all []part.Part
	for _, e := range c.Extensions {
		all = append(all, brought(e).Part)
	}
	return all
}

// extensionParts returns the parts of an extension API server: its own kinds, and admission by the policies and
// webhooks of the server in front of it.
func extensionParts(c *config.Config) []part.Part {
	return append(extensions(c),
		Behind(c).Part,
		unservedKinds(),
		embeddedPlugins(c.Admission.Plugins),
		admissionPolicies(c),
		admissionWebhooks(c),
		serverMetrics(c),
		statusPages(c.Flags, version.Emulated(config.Emulated(&c.Emulation))),
		profiles(&c.Observability),
	)
}

// unservedKinds adds the kinds of Kubernetes for readers of the view. No request finds them.
func unservedKinds() part.Part {
	return part.Part{Name: "built-in kinds, not served",
		Resources: func(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			return append(resources, kinds.Unserved()...)
		}}
}
