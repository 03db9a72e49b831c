package bowsprit

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/control"
)

// TestNames checks that the configuration lists the names of the admission plugins, in the order in which they run, and
// of the controllers.
func TestNames(t *testing.T) {
	t.Parallel()
	c := Config{Workloads: WorkloadsConfig{Simulate: map[string]string{}}}.withDefaults()
	all := parts(&c, "")
	var plugins []string
	for _, p := range admissionChain(all, nil) {
		plugins = append(plugins, p.Name)
	}
	if known := AdmissionPlugins(); !slices.Equal(plugins, known) {
		t.Errorf("admission plugins run in the order %q, and names.go lists %q", plugins, known)
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
	if known := controllers(); !slices.Equal(names, known) {
		t.Errorf("there are the controllers %q, and names.go lists %q", names, known)
	}
}
