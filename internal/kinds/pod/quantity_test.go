package pod

import (
	"maps"
	"testing"
)

func TestRoundUp(t *testing.T) {
	t.Parallel()
	list := map[string]any{
		"a": "100u", "b": "1500u", "c": "0.0001", "d": "1e-4", "e": "-0.1m", "f": "0.5", "g": "250m", "h": "1.5Gi",
		"i": "1E", "j": "1n", "k": int64(3), "l": "odd",
	}
	RoundUp(map[string]any{"limits": list, "requests": nil}, "limits", "requests", "absent")
	want := map[string]any{
		"a": "1m", "b": "2m", "c": "1m", "d": "1e-3", "e": "-1m", "f": "0.5", "g": "250m", "h": "1.5Gi", "i": "1E",
		"j": "1m", "k": int64(3), "l": "odd",
	}
	if !maps.Equal(list, want) {
		t.Errorf("got  %v\nwant %v", list, want)
	}
}
