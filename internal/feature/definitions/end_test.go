package definitions

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
)

const portRules = "steps: [{from: v1, to: v2, rules: [{wrap: spec.port, to: spec.ports}]}]"

// defineRules creates a definition with two versions and rules, and two ships: one has a value that only the rules can
// restore.
func (r *replica) defineRules(annotations object.Object) {
	r.Helper()
	annotations["bowsprit.dev/conversion"] = portRules
	r.create(crds, object.Object{
		"metadata": object.Object{"name": shipsName, "annotations": annotations},
		"spec": object.Object{
			"group": "example.com", "scope": "Cluster", "names": object.Object{"plural": "ships", "kind": "Ship"},
			"conversion": object.Object{"strategy": "Declarative"},
			"versions": []any{
				version("v1", true, object.Object{"port": text()}),
				version("v2", false, object.Object{"ports": object.Object{"type": "array", "items": text()}}),
			},
		},
	})
	r.create(ships, ship("first", object.Object{"port": "Kiel"}))
	c := r.call(ships, "first")
	c = c.In(c.Resource.Version("v2"))
	if _, err := r.Update(r.Context(), c, updateOptions, func(obj object.Object) (object.Object, error) {
		object.Map(obj, "spec")["ports"] = []any{"Kiel", "Oslo"}
		return obj, nil
	}); err != nil {
		r.Fatal(err)
	}
	r.create(ships, ship("second", object.Object{"port": "Rostock"}))
}

// endRules removes the rules, and returns the warnings.
func (r *replica) endRules(conversion object.Object) ([]string, error) {
	r.Helper()
	scope := &request.Scope{}
	_, err := r.Update(request.NewContext(r.Context(), scope), r.call(crds, shipsName), metav1.UpdateOptions{},
		func(obj object.Object) (object.Object, error) {
			delete(object.Map(obj, "metadata", "annotations"), "bowsprit.dev/conversion")
			object.Map(obj, "spec")["conversion"] = conversion
			return obj, nil
		})
	return scope.Warnings(), err
}

// TestEndOfRules checks that an update that removes rules is checked against the objects as they are stored.
func TestEndOfRules(t *testing.T) {
	t.Parallel()
	const stash = "1 of 2 stored objects lose fields: first: loses the values of other versions in the annotation " +
		"bowsprit.dev/conversion-stash (prunedObjects)"
	const fields = "v2: 2 of 2 stored objects lose fields: first: loses spec.port; second: loses spec.port (prunedObjects)"
	webhook := object.Object{"strategy": "Webhook", "webhook": object.Object{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": object.Object{"url": "https://127.0.0.1:1/convert"},
	}}
	for name, test := range map[string]struct {
		conversion object.Object
		want       []string
	}{
		"None":    {object.Object{"strategy": "None"}, []string{stash, fields}},
		"Webhook": {webhook, []string{stash}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, memory.New(), Settings{Mode: compat.Enforce})
			a.defineRules(object.Object{})
			_, err := a.endRules(test.conversion)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error %v has no %q", err, want)
				}
			}
			b := start(t, memory.New(), Settings{})
			b.defineRules(object.Object{})
			warnings, err := b.endRules(test.conversion)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.Join(warnings, "\n"), want) {
					t.Errorf("the warnings %q have no %q", warnings, want)
				}
			}
		})
	}
}

// TestEndOfConversionOff checks that the mode Off checks nothing, and that a definition without objects may change.
func TestEndOfConversionOff(t *testing.T) {
	t.Parallel()
	a := start(t, memory.New(), Settings{Mode: compat.Enforce})
	a.defineRules(object.Object{compat.Annotation: "Off"})
	a.check = func(string) { t.Error("an object is read") }
	if _, err := a.endRules(object.Object{"strategy": "None"}); err != nil {
		t.Error(err)
	}
}
