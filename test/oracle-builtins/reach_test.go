package oraclebuiltins

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestReach compares the fields that endpoints restore, regardless of the body, with Kubernetes' strategies.
func TestReach(t *testing.T) {
	byKind := map[string]*catalog.Resource{}
	for _, r := range kinds.Resources() {
		if !r.Virtual {
			byKind[r.Kind] = r
		}
	}
	all := map[string]any{}
	for name, s := range strategies {
		all[name] = s
	}
	for name, s := range parts {
		all[name] = s
	}
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kind, subresource, _ := strings.Cut(name, "/")
		r := byKind[kind]
		if r == nil {
			t.Errorf("%s is not there", kind)
			continue
		}
		for _, v := range r.Versions {
			reach := v.ResetFieldsOf(subresource, v)
			if s, ok := all[name].(rest.ResetFieldsFilterStrategy); ok {
				seen++
				if reach.Only == nil || s.GetResetFieldsFilter()[fieldpath.APIVersion(r.APIVersion(v))] == nil {
					t.Errorf("%s in %s is not limited to some fields", name, v.Name)
				}
				continue
			}
			want := []string{}
			if s, ok := all[name].(rest.ResetFieldsStrategy); ok {
				seen++
				if set := s.GetResetFields()[fieldpath.APIVersion(r.APIVersion(v))]; set != nil {
					set.Iterate(func(p fieldpath.Path) { want = append(want, strings.TrimPrefix(p.String(), ".")) })
				}
			}
			got := []string{}
			for _, path := range reach.Except {
				got = append(got, strings.Join(path, "."))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s in %s puts back %v, Kubernetes %v", name, v.Name, got, want)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d strategies say what they put back", seen)
	}
}
