package parts

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestNames checks that the configuration lists the names of the admission plugins, in the order in which they run, and
// of the controllers.
func TestNames(t *testing.T) {
	t.Parallel()
	c := config.WithDefaults(config.Config{Workloads: config.Workloads{Simulate: map[string]string{}}})
	all := Of(&c, "")
	var plugins []string
	for _, p := range Plugins(all, nil) {
		plugins = append(plugins, p.Name)
	}
	if known := config.AdmissionPlugins(); !slices.Equal(plugins, known) {
		t.Errorf("admission plugins run in the order %q, and config/names.go lists %q", plugins, known)
	}
	names := control.Names()
	for _, p := range all {
		for _, l := range p.Loops {
			if !l.Always {
				names = append(names, l.Name)
			}
		}
	}
	slices.Sort(names)
	if known := config.ControllerNames(); !slices.Equal(names, known) {
		t.Errorf("there are the controllers %q, and config/names.go lists %q", names, known)
	}
}
