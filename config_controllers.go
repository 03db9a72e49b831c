package bowsprit

import (
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// ControllersConfig configures the controllers of the server.
type ControllersConfig struct {
	// Enabled selects the running controllers of kube-controller-manager, as its flag --controllers: names, names after
	// a minus, "*" for all others, "-*" for no others. Empty means all. The short names of before 1.28 ("tokencleaner")
	// are valid, too. The API serves all that other controllers need.
	Enabled []string
	// Signing configures the authorities that sign CertificateSigningRequests.
	Signing SigningConfig
}

func (c *ControllersConfig) settings() []Setting {
	return append([]Setting{{
		Name:  "controllers",
		Help:  `controllers to run: "*" for all, "name" for one, "-name" for all but one (default "*")`,
		Value: &c.Enabled, Only: Serve,
	}}, c.Signing.settings()...)
}

func (c *ControllersConfig) validate(p *problems) {
	c.Signing.validate(p)
	for _, name := range c.Enabled {
		if name == "*" || name == "-*" {
			continue
		}
		if known := controllers(); !slices.Contains(known, strings.TrimPrefix(kinds.ControllerName(name), "-")) {
			p.add("--controllers: %q is unknown: use *, or %s, each perhaps after a minus", name,
				strings.Join(known, ", "))
		}
	}
}

// runs reports whether a controller is switched on.
func runs(c *ControllersConfig, controller string) bool {
	return kinds.RunsController(c.Enabled, controller)
}
