package plugins

import (
	"path/filepath"
	"testing"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestCases checks that each plugin has a file of cases.
func TestCases(t *testing.T) {
	for _, name := range Names() {
		if files, err := filepath.Glob("*/testdata/" + name + ".yaml"); err != nil || len(files) != 1 {
			t.Errorf("there are no cases of %s: %v %v", name, files, err)
		}
	}
}

// BenchmarkCustomObject measures the cost of all plugins for a write that matches none of them.
func BenchmarkCustomObject(b *testing.B) {
	view := watchcache.New(nil, watchcache.Options{})
	chain := admit.Chain{Plugins: All(plugin.Config{View: view})}
	pods := &catalog.Resource{
		Group: "example.com", Plural: "pods", Definition: catalog.Definition{Name: "pods.example.com"},
	}
	a := &admit.Attributes{Operation: admit.Create, Object: admit.Object{}, Target: admit.Target{Resource: pods}}
	b.ReportAllocs()
	for b.Loop() {
		if err := chain.Mutate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
		if err := chain.Validate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}
