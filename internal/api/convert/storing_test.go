package convert

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

const storedMap = `{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}`

// storedKinds are kinds that are stored in different ways.
func storedKinds() map[string]*catalog.Resource {
	typed := &catalog.Version{Name: "v1", New: func() any { return &corev1.ConfigMap{} }}
	made := func(group string, v *catalog.Version) *catalog.Resource {
		return &catalog.Resource{
			Group: group, Kind: "ConfigMap", Prefix: group + "x", Versions: []*catalog.Version{v}, Storage: v,
		}
	}
	custom := made("example.com", &catalog.Version{Name: "v1"})
	custom.Definition.Name = "x.example.com"
	later := &catalog.Version{Name: "v2", New: func() any { return &corev1.Pod{} }}
	formed := made("formed", later)
	formed.Versions = append(formed.Versions, typed)
	formed.Form = &catalog.Form{
		Version: "v1",
		Encode:  func(raw []byte) ([]byte, error) { return replaced(raw, `"1"`, `"2"`), nil },
		Decode:  func(raw []byte) ([]byte, error) { return replaced(raw, `"2"`, `"1"`), nil },
	}
	return map[string]*catalog.Resource{
		"built-in": made("", typed), "without a Go type": made("untyped", &catalog.Version{Name: "v1"}),
		"definition": made("apiextensions.k8s.io", typed), "APIService": made("apiregistration.k8s.io", typed),
		"custom": custom, "of another form": formed,
	}
}

func replaced(raw []byte, from, to string) []byte {
	return []byte(strings.Replace(string(raw), from, to, 1))
}

func TestEncode(t *testing.T) {
	t.Parallel()
	kinds := storedKinds()
	var all []*catalog.Resource
	for name, r := range kinds {
		if name != "custom" {
			all = append(all, r)
		}
	}
	const protobuf, yaml, cbor = "k8s\x00", "apiVersion: v1\n", "\xd9\xd9\xf7"
	for _, test := range []struct {
		kind, media string
		cbor        bool
		want        string // how it begins
	}{
		{"built-in", "", true, "{"},
		{"built-in", codec.JSON, false, "{"},
		{"built-in", codec.Protobuf, false, protobuf},
		{"built-in", codec.YAML, false, yaml},
		{"without a Go type", codec.Protobuf, false, "{"},
		{"definition", codec.Protobuf, true, "{"},
		{"APIService", codec.YAML, true, "{"},
		{"custom", codec.Protobuf, false, "{"},
		{"custom", codec.Protobuf, true, cbor},
		{"of another form", codec.JSON, false, "{"},
		{"of another form", codec.Protobuf, false, protobuf},
	} {
		r := kinds[test.kind]
		s := NewStoring(all, StoringOptions{Media: test.media, CBOR: test.cbor})
		value, as := s.Encode(r, []byte(storedMap))
		if !strings.HasPrefix(string(value), test.want) {
			t.Errorf("%s in %s: %q", test.kind, test.media, value)
		}
		for _, reader := range []*Storing{s, NewStoring(all, StoringOptions{})} {
			got, was, err := reader.Decode(r.Prefix, value)
			if err != nil || string(got) != storedMap || was != as {
				t.Errorf("%s in %s: %s, encoding %d, not %d: %v", test.kind, test.media, got, was, as, err)
			}
		}
		below := s.EncodeBelow(r.Prefix, []byte(storedMap))
		if test.kind != "custom" && string(below) != string(value) {
			t.Errorf("%s in %s below its prefix: %q", test.kind, test.media, below)
		}
	}
	if value := (*Storing)(nil).EncodeBelow("x", []byte("{}")); string(value) != "{}" {
		t.Errorf("without a Storing: %s", value)
	}
	// What is no object of its type stays what it is.
	s := NewStoring(all, StoringOptions{Media: codec.Protobuf})
	const none = `{"metadata":1}`
	if value, as := s.Encode(kinds["built-in"], []byte(none)); string(value) != none || as != asJSON {
		t.Errorf("no object: %q, encoding %d", value, as)
	}
}

// An object is stale if it would be stored in another encoding.
func TestStale(t *testing.T) {
	t.Parallel()
	kinds := storedKinds()
	for _, test := range []struct {
		kind, was, is string
		want          bool
	}{
		{"built-in", codec.JSON, codec.JSON, false},
		{"built-in", codec.JSON, codec.Protobuf, true},
		{"built-in", codec.Protobuf, codec.Protobuf, false},
		{"built-in", codec.Protobuf, codec.JSON, true},
		{"built-in", codec.YAML, codec.Protobuf, true},
		{"without a Go type", codec.JSON, codec.Protobuf, false},
		{"definition", codec.JSON, codec.Protobuf, false},
		{"custom", codec.JSON, codec.Protobuf, false},
	} {
		r := kinds[test.kind]
		_, was := NewStoring(nil, StoringOptions{Media: test.was}).Encode(r, []byte(storedMap))
		s := NewStoring(nil, StoringOptions{Media: test.is})
		if got := s.Stale(r, was, func() []byte { return []byte(storedMap) }); got != test.want {
			t.Errorf("%s in %s, to be in %s: %v", test.kind, test.was, test.is, got)
		}
	}
}

// What a server writes it need not decode when the store shows it, and once only.
func TestOwnWritesAreKnown(t *testing.T) {
	t.Parallel()
	r := storedKinds()["built-in"]
	s := NewStoring([]*catalog.Resource{r}, StoringOptions{Media: codec.Protobuf})
	raw := []byte(storedMap)
	value, _ := s.Encode(r, raw)
	same := func() bool {
		got, _, err := s.Decode(r.Prefix, []byte(string(value)))
		if err != nil || string(got) != storedMap {
			t.Fatalf("%s %v", got, err)
		}
		return &got[0] == &raw[0]
	}
	if !same() {
		t.Error("the first read decodes")
	}
	if same() {
		t.Error("the second read does not decode")
	}
	large := []byte(strings.Replace(storedMap, "1", strings.Repeat("1", recentBytes), 1))
	if value, _ = s.Encode(r, large); s.recent.take(value) != nil {
		t.Error("a large object is kept")
	}
}
