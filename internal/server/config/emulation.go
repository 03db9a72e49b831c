package config

import "github.com/bowsprit/bowsprit/internal/kinds"

// Emulation makes the server behave like an older release of Kubernetes, so that a control plane can move to this
// one in two steps: first to the new server, and then, without a way back, to its kinds and stored versions.
type Emulation struct {
	// Version is the release with the kinds to serve, such as "1.36" or "kube=1.36"; at most one. The default is the
	// server's own release; 1.34 is the oldest.
	Version []string
	// MinCompatibility is the oldest release that must be able to read the stored objects, and to run their CEL
	// expressions; at most one, no newer than Version. The default is the release before Version, or 1.34 if that is
	// newer. If several servers run in one process, the oldest release counts for expressions.
	MinCompatibility []string
	// ForwardCompatible also serves newer stable versions of the kinds of Version.
	ForwardCompatible bool
	// RuntimeConfigForwardCompatible allows API.RuntimeConfig to name kinds newer than Version. Otherwise they prevent
	// the start.
	RuntimeConfigForwardCompatible bool
}

func (c *Emulation) settings() []Setting {
	return []Setting{
		{
			Name: "emulated-version",
			Help: "release of Kubernetes to behave like, 1.34 to 1.37: which built-in kinds are served (default 1.37)", Value: &c.Version,
		},
		{
			Name:  "min-compatibility-version",
			Help:  "oldest release that must be able to read stored objects and run their expressions, 1.34 to --emulated-version (default the release before that)",
			Value: &c.MinCompatibility,
		},
		{
			Name:  "emulation-forward-compatible",
			Help:  "also serve newer stable versions of the resources of --emulated-version",
			Value: &c.ForwardCompatible,
		},
		{
			Name:  "runtime-config-emulation-forward-compatible",
			Help:  "serve resources of --runtime-config that are newer than --emulated-version, instead of refusing to start",
			Value: &c.RuntimeConfigForwardCompatible,
		},
	}
}

// Emulated returns the parsed settings, which must be valid.
func Emulated(c *Emulation) kinds.Emulation {
	e, err := kinds.ParseEmulation(c.Version, c.MinCompatibility)
	if err != nil {
		e, _ = kinds.ParseEmulation(nil, nil)
	}
	e.ForwardCompatible = c.ForwardCompatible && e.Emulates()
	e.RuntimeConfigForwardCompatible = c.RuntimeConfigForwardCompatible && e.Emulates()
	return e
}

func (c *Emulation) validate(p *problems, api *API) {
	e, err := kinds.ParseEmulation(c.Version, c.MinCompatibility)
	if err != nil {
		p.add("--emulated-version, --min-compatibility-version: %w", err)
		return
	}
	const own = "cannot be set to true if the emulation version is the same as the binary version: leave it out"
	if c.ForwardCompatible && !e.Emulates() {
		p.add("--emulation-forward-compatible %s", own)
	}
	if c.RuntimeConfigForwardCompatible && !e.Emulates() {
		p.add("--runtime-config-emulation-forward-compatible %s", own)
	}
	config := kinds.RuntimeConfig(api.RuntimeConfig)
	if !e.Emulates() || config.Validate() != nil {
		return // nothing is newer than the server's own release, and --runtime-config reports its own errors
	}
	if _, err := config.Apply(kinds.Resources(), Emulated(c)); err != nil {
		p.add("--emulated-version: %w", err)
	}
}
