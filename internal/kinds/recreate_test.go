package kinds

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestRecreateStrategy checks that a stateful set may only have the strategy Recreate with its feature gate, which no
// release opens, or if it already has this strategy; and that both alpha gates of the kind work together.
func TestRecreateStrategy(t *testing.T) {
	t.Parallel()
	const (
		two   = "spec.updateStrategy: must be 'RollingUpdate' or 'OnDelete'"
		three = "spec.updateStrategy: must be 'RollingUpdate', 'OnDelete', or 'Recreate'"
	)
	set := func(strategy object.Object) object.Object {
		labels := object.Object{"app": "db"}
		return object.Object{"metadata": object.Object{"name": "db", "namespace": "default"}, "spec": object.Object{
			"selector": object.Object{"matchLabels": labels}, "updateStrategy": strategy,
			"template": object.Object{"metadata": object.Object{"labels": labels}, "spec": object.Object{
				"containers": []any{object.Object{"name": "c", "image": "i"}},
				"tolerations": []any{object.Object{
					"key": "level", "operator": "Gt", "value": "5", "effect": "NoSchedule",
				}},
			}},
		}}
	}
	for _, test := range []struct {
		open     bool
		was, now string // "" for a creation
		rolling  bool
		want     []string
	}{
		{open: true, now: "Recreate"},
		{open: true, was: "RollingUpdate", now: "Recreate"},
		{open: true, now: "Recreate", rolling: true, want: []string{
			"spec.updateStrategy.rollingUpdate: only allowed for updateStrategy 'RollingUpdate'",
		}},
		{open: true, now: "Never", want: []string{three}},
		{now: "Recreate", want: []string{two}},
		{was: "RollingUpdate", now: "Recreate", want: []string{two}},
		{was: "Recreate", now: "Recreate"},
		{was: "Recreate", now: "Never", want: []string{three}},
		{now: "Never", want: []string{two}},
	} {
		resources := Resources()
		Emulation{}.DropDisabled(resources, map[string]bool{recreatingSets: test.open, comparingTolerations: true})
		s := resources[slices.IndexFunc(resources,
			func(r *catalog.Resource) bool { return r.Plural == "statefulsets" })].Strategy
		made := func(kind string, rolling bool) object.Object {
			strategy := object.Object{"type": kind}
			if rolling {
				strategy["rollingUpdate"] = object.Object{}
			}
			obj := set(strategy)
			s.Default(obj)
			return obj
		}
		obj := made(test.now, test.rolling)
		errs := s.Validate(t.Context(), obj)
		if test.was != "" {
			errs = s.ValidateUpdate(t.Context(), obj, made(test.was, false), "")
		}
		var got []string
		for _, err := range errs {
			got = append(got, err.Field+": "+err.Detail)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
