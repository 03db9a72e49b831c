package audit

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// null encodes a nil value in an operation, which must be present.
type null struct{}

// MarshalJSON implements json.Marshaler.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// diff returns the JSON patch that turns before into after. Both are decoded JSON, or nil for a missing object. The
// patch is empty if they are equal, and deterministic: members are in the order of their names.
func diff(before, after map[string]any) []operation {
	switch {
	case before == nil && after == nil:
		return []operation{}
	case before == nil:
		return []operation{{Op: "add", Value: after}}
	case after == nil:
		return []operation{{Op: "remove"}}
	}
	return diffObjects([]operation{}, "", before, after)
}

func diffObjects(out []operation, path string, before, after map[string]any) []operation {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		at := path + "/" + pointer.Replace(key)
		if now, ok := after[key]; ok {
			out = diffValues(out, at, before[key], now)
		} else {
			out = append(out, operation{Op: "remove", Path: at})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok {
			out = append(out, operation{Op: "add", Path: path + "/" + pointer.Replace(key), Value: valueOf(after[key])})
		}
	}
	return out
}

func diffValues(out []operation, path string, before, after any) []operation {
	switch now := after.(type) {
	case map[string]any:
		if was, ok := before.(map[string]any); ok {
			return diffObjects(out, path, was, now)
		}
	case []any:
		if was, ok := before.([]any); ok {
			return diffLists(out, path, was, now)
		}
	}
	if codec.Equal(before, after) {
		return out
	}
	return append(out, operation{Op: "replace", Path: path, Value: valueOf(after)})
}

// diffLists compares elements from both ends. It compares the elements in between one by one; surplus elements count as
// added or removed there. That keeps a patch short if one element of a list is added, removed or changed.
func diffLists(out []operation, path string, before, after []any) []operation {
	first := 0
	for first < len(before) && first < len(after) && codec.Equal(before[first], after[first]) {
		first++
	}
	was, now := len(before), len(after)
	for was > first && now > first && codec.Equal(before[was-1], after[now-1]) {
		was, now = was-1, now-1
	}
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	shared := min(was, now)
	for i := first; i < shared; i++ {
		out = diffValues(out, at(i), before[i], after[i])
	}
	for i := was - 1; i >= shared; i-- {
		out = append(out, operation{Op: "remove", Path: at(i)})
	}
	for i := shared; i < now; i++ {
		out = append(out, operation{Op: "add", Path: at(i), Value: valueOf(after[i])})
	}
	return out
}

func valueOf(v any) any {
	if v == nil {
		return null{}
	}
	return v
}

// pointer escapes a name for a JSON pointer (RFC 6901, section 4).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")
