package control

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestWhichControllersRun checks that Config.Runs selects controllers of the core, and that definitions always have a
// controller.
func TestWhichControllersRun(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{nil, {Namespace}, {GarbageCollector, StorageMigration}, Names()} {
		config := Config{
			View: watchcache.New(nil, watchcache.Options{}),
			Runs: func(name string) bool { return slices.Contains(want, name) },
		}
		var names []string
		for _, c := range New(config).all {
			names = append(names, c.name)
		}
		if names[0] != "definition-controller" {
			t.Errorf("%q: definitions have no controller", want)
		}
		names = names[1:]
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%q run, want %q", names, want)
		}
	}
}
