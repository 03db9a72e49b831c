package kinds

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestResetFieldsAreReset updates objects of all kinds, and their status, with other values in the fields that the
// endpoint resets for server-side apply: an update must reset them, too.
func TestResetFieldsAreReset(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, r := range Resources() {
		if r.Virtual || r.Secondary {
			continue
		}
		for _, v := range r.Versions {
			for _, subresource := range []string{"", "status"} {
				for _, path := range v.ResetFieldsOf(subresource, v).Except {
					if len(path) != 1 || !slices.Contains([]string{"metadata", "spec", "status"}, path[0]) {
						continue
					}
					checked++
					changed, before := resets(r.StrategyFor(v), subresource, path[0])
					if !reflect.DeepEqual(changed, before) {
						t.Errorf("%s in %s through %q: %s is %v, want %v", r.Kind, v.Name, subresource, path[0],
							changed, before)
					}
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d fields are reset", checked)
	}
}

// resets returns a value in a field after an update with another one, and before.
func resets(s *catalog.Strategy, subresource, field string) (changed, before any) {
	made := func(value string) object.Object {
		obj := object.Object{"metadata": map[string]any{"name": "a", "generation": int64(1), "resourceVersion": "1"},
			"spec": map[string]any{}, "status": map[string]any{}}
		if field == "metadata" {
			obj["metadata"].(map[string]any)["labels"] = map[string]any{"x": value}
		} else {
			obj[field] = map[string]any{"x": value}
		}
		return obj
	}
	obj, old := made("new"), made("old")
	s.PrepareUpdate(obj, runtime.DeepCopyJSON(old), subresource, catalog.Env{Now: time.Now()})
	if field == "metadata" {
		return object.Map(obj, "metadata", "labels")["x"], object.Map(old, "metadata", "labels")["x"]
	}
	return object.Map(obj, field)["x"], object.Map(old, field)["x"]
}
