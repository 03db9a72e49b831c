package core_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/core"
)

// TestUpdateOfNewerEvent checks which fields of an event a recorder may change through events.k8s.io.
func TestUpdateOfNewerEvent(t *testing.T) {
	t.Parallel()
	var events *catalog.Resource
	for _, r := range core.Kinds() {
		if r.Kind == "Event" && r.Secondary {
			events = r
		}
	}
	old := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"name": "e", "namespace": "default"},
		"eventTime": "2026-01-01T00:00:00.000001Z", "reportingController": "example.com/c", "reportingInstance": "i",
		"action": "A", "reason": "R",
		"type": "Normal", "regarding": map[string]any{"kind": "Pod", "name": "p", "namespace": "default"}, "note": "n",
	}
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"series", map[string]any{"count": int64(2), "lastObservedTime": "2026-01-01T00:00:01.000000Z"}, ""},
		{"series", map[string]any{"count": int64(1), "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
			`series.count: Invalid value: "": should be at least 2`},
		{"eventTime", "2026-01-01T00:00:00.000001Z", ""},
		{"eventTime", "2026-01-01T00:00:00.000002Z",
			`eventTime: Invalid value: "2026-01-01T00:00:00.000002Z": field is immutable`},
		{"note", "other", `message: Invalid value: "other": field is immutable`},
	} {
		obj := runtime.DeepCopyJSON(old)
		obj[c.field] = c.value
		if _, err := events.Strategy.Decode(obj); err != nil {
			t.Fatal(err)
		}
		got := ""
		if errs := events.Strategy.ValidateUpdate(t.Context(), obj, runtime.DeepCopyJSON(old), ""); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != c.want {
			t.Errorf("%s %v: %s, want %s", c.field, c.value, got, c.want)
		}
	}
}
