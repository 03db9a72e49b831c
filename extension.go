package bowsprit

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Extension adds a program's own kinds to a server. Only package extension makes it.
type Extension interface {
	// Bring returns the additions to the server.
	Bring() part.Extension
}

// behind returns the dependencies of an extension API server on the server in front of it, or nil for all other
// servers.
func behind(c *Config) *part.Behind {
	for _, e := range c.Extensions {
		if b := e.Bring().Behind; b != nil {
			return b
		}
	}
	return nil
}

// extensions brings the kinds of Extensions.
func extensions(c *Config) []part.Part {
	var all []part.Part
	for _, e := range c.Extensions {
		all = append(all, e.Bring().Part)
	}
	return all
}

// extensionParts returns the parts of an extension API server: its own kinds, and admission by the policies and
// webhooks of the server in front of it.
func extensionParts(c *Config) []part.Part {
	return append(extensions(c),
		behind(c).Part,
		unservedKinds(),
		embeddedPlugins(c.Admission.Plugins),
		admissionPolicies(c),
		admissionWebhooks(),
		serverMetrics(c),
		statusPages(c.Flags, shown(&c.Emulation)),
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
