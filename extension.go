package bowsprit

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Extension brings kinds of a program's own into a server. Package extension makes it, and nothing else does.
type Extension interface {
	// Bring returns what is added to the server.
	Bring() part.Extension
}

// behind returns what an extension API server takes from the server behind which it stands, nil for all other servers.
func (c *Config) behind() *part.Behind {
	for _, e := range c.Extensions {
		if b := e.Bring().Behind; b != nil {
			return b
		}
	}
	return nil
}

// extensions brings the kinds of Extensions.
func (c *Config) extensions() []part.Part {
	var all []part.Part
	for _, e := range c.Extensions {
		all = append(all, e.Bring().Part)
	}
	return all
}

// extensionParts are what an extension API server has beside the core: its own kinds, and admission by the policies and
// webhooks of the server behind which it stands.
func (c *Config) extensionParts() []part.Part {
	return append(c.extensions(),
		c.behind().Part,
		unservedKinds(),
		embeddedPlugins(c.Admission.Plugins),
		admissionPolicies(c),
		admissionWebhooks(),
		serverMetrics(c),
		statusPages(c.Flags, c.Emulation.shown()),
		profiles(&c.Observability),
	)
}

// unservedKinds brings the kinds of Kubernetes for those who look at their objects in the view. No request finds them.
func unservedKinds() part.Part {
	return part.Part{Name: "built-in kinds, not served",
		Resources: func(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			return append(resources, kinds.Unserved()...)
		}}
}
