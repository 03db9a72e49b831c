package assistant

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// state is a value of an object, and its form with masks.
type state struct{ value, shown any }

// absent stands for a missing value.
type absent struct{}

// difference is a list of the fields in which two states differ, as lines with their paths:
//
//	~ spec.replicas: 1 -> 3
//	+ metadata.labels.tier: "web"
//	- spec.template.spec.containers[name=side].env: [{"name":"A"}]
//
// The values are compared as they are, and written with their masks. Where a mask replaces a whole object or list, its
// path is the path of the line.
type difference struct{ lines []string }

// compare adds the differences between two states at a path.
func (d *difference) compare(path string, before, after state) {
	if reflect.DeepEqual(before.value, after.value) {
		return
	}
	if a, b, ok := both(before, after, fieldsOf); ok {
		for _, key := range slices.Sorted(slices.Values(union(a, b))) {
			d.compare(join(path, key), a.at(key), b.at(key))
		}
		return
	}
	for _, items := range []func(state) (*members, bool){namedItems, numberedItems} {
		if a, b, ok := both(before, after, items); ok {
			d.compareItems(path, a, b)
			return
		}
	}
	switch {
	case before.value == absent{}:
		d.add("+ %s: %s", path, text(after.shown))
	case after.value == absent{}:
		d.add("- %s: %s", path, text(before.shown))
	default:
		d.add("~ %s: %s -> %s", path, text(before.shown), text(after.shown))
	}
}

func (d *difference) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *difference) compareItems(path string, a, b *members) {
	for _, key := range union(a, b) {
		d.compare(path+"["+key+"]", a.at(key), b.at(key))
	}
	if !slices.Equal(a.common(b), b.common(a)) {
		d.add("~ %s: the order of the items", path)
	}
}

// members are the fields of an object, or the items of a list, in their order.
type members struct {
	keys []string
	of   map[string]state
}

// at returns the state of a member, which may be absent.
func (m *members) at(key string) state {
	if s, found := m.of[key]; found {
		return s
	}
	return state{absent{}, absent{}}
}

// common returns the keys that others have, too.
func (m *members) common(others *members) (keys []string) {
	for _, key := range m.keys {
		if _, found := others.of[key]; found {
			keys = append(keys, key)
		}
	}
	return keys
}

// union returns the keys of a, then the other keys of b.
func union(a, b *members) []string {
	keys := slices.Clone(a.keys)
	for _, key := range b.keys {
		if _, found := a.of[key]; !found {
			keys = append(keys, key)
		}
	}
	return keys
}

// both returns the members of two states. ok is false if one has none of this type, or a mask.
func both(before, after state, of func(state) (*members, bool)) (a, b *members, ok bool) {
	if a, ok = of(before); !ok {
		return nil, nil, false
	}
	b, ok = of(after)
	return a, b, ok
}

func fieldsOf(s state) (*members, bool) {
	value, ok := s.value.(map[string]any)
	shown, unmasked := s.shown.(map[string]any)
	if !ok || !unmasked {
		return nil, false
	}
	m := &members{slices.Sorted(maps.Keys(value)), map[string]state{}}
	for key, v := range value {
		m.of[key] = state{v, shown[key]}
	}
	return m, true
}

// namedItems returns the items of a list by their names. All items must have one.
func namedItems(s state) (*members, bool) {
	return itemsOf(s, func(_ int, shown any) (string, bool) {
		item, _ := shown.(map[string]any)
		name, ok := item["name"].(string)
		if !plainKey.MatchString(name) {
			name = strconv.Quote(name)
		}
		return "name=" + name, ok
	})
}

// numberedItems returns the items of a list by their indexes.
func numberedItems(s state) (*members, bool) {
	return itemsOf(s, func(i int, _ any) (string, bool) { return strconv.Itoa(i), true })
}

func itemsOf(s state, name func(i int, shown any) (string, bool)) (*members, bool) {
	value, ok := s.value.([]any)
	shown, unmasked := s.shown.([]any)
	if !ok || !unmasked || len(value) != len(shown) {
		return nil, false
	}
	m := &members{of: map[string]state{}}
	for i, v := range value {
		key, ok := name(i, shown[i])
		if _, twice := m.of[key]; !ok || twice {
			return nil, false
		}
		m.keys, m.of[key] = append(m.keys, key), state{v, shown[i]}
	}
	return m, true
}

// plainKey matches the keys that a path contains without quotes.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join adds a key to a path.
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// text returns a value as JSON.
func text(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil { // it was decoded from JSON
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
