package config

import (
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Controllers configures the controllers of the server.
type Controllers struct {
	// Enabled selects the running controllers of kube-controller-manager, as its flag --controllers: names, names after
	// a minus, "*" for all others, "-*" for no others. Empty means all. The short names of before 1.28 ("tokencleaner")
	// are valid, too. The API serves all that other controllers need.
	Enabled []string
	// Signing configures the authorities that sign CertificateSigningRequests.
	Signing Signing
}

func (c *Controllers) settings() []Setting {
	return append([]Setting{{
		Name:  "controllers",
		Help:  `controllers to run: "*" for all, "name" for one, "-name" for all but one (default "*")`,
		Value: &c.Enabled, Only: Serve,
	}}, c.Signing.settings()...)
}

func (c *Controllers) validate(p *problems) {
	c.Signing.validate(p)
	for _, name := range c.Enabled {
		if name == "*" || name == "-*" {
			continue
		}
		if known := ControllerNames(); !slices.Contains(known, strings.TrimPrefix(kinds.ControllerName(name), "-")) {
			p.add("--controllers: %q is unknown: use *, or %s, each perhaps after a minus", name,
				strings.Join(known, ", "))
		}
	}
}

// Runs reports whether a controller is switched on.
func Runs(c *Controllers, controller string) bool {
	return kinds.RunsController(c.Enabled, controller)
}
