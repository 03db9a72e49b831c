package rule

import (
	"strings"
	"testing"
)

// TestDifference shows small differences, and the sizes of large values.
func TestDifference(t *testing.T) {
	t.Parallel()
	if got := Difference(map[string]any{"a": 1}, map[string]any{"a": 2}); !strings.Contains(got, "2") ||
		strings.Contains(got, "too many") {
		t.Errorf("small values: %s", got)
	}
	large := make([]any, 20_000)
	for i := range large {
		large[i] = "some text"
	}
	if got := Difference(large, large[1:]); !strings.Contains(got, "too many") || len(got) > 200 {
		t.Errorf("large values: %.300s", got)
	}
}
