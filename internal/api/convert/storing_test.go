package convert

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

const storedMap = `{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}`

// storedKinds returns kinds that are stored in different ways.
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
		{"built-in", CompressedJSON, true, compressedMagic},
		{"without a Go type", CompressedJSON, false, compressedMagic},
		{"definition", CompressedJSON, false, "{"},
		{"custom", CompressedJSON, false, "{"},
		{"of another form", CompressedJSON, false, compressedMagic},
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
			got, err := reader.Decode(r.Prefix, value)
			if err != nil || string(got.JSON) != storedMap || got.Encoding != as {
				t.Errorf("%s in %s: %s, encoding %d, not %d: %v",
					test.kind, test.media, got.JSON, got.Encoding, as, err)
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
	// A value that does not fit its type stays unchanged.
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
		{"built-in", CompressedJSON, codec.JSON, true},
		{"built-in", codec.Protobuf, CompressedJSON, true},
		{"built-in", CompressedJSON, CompressedJSON, false},
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

// TestOwnWritesAreKnown checks that a server need not decode its own writes when the store returns them, but only once.
func TestOwnWritesAreKnown(t *testing.T) {
	t.Parallel()
	r := storedKinds()["built-in"]
	s := NewStoring([]*catalog.Resource{r}, StoringOptions{Media: codec.Protobuf})
	raw := []byte(storedMap)
	value, _ := s.Encode(r, raw)
	same := func() bool {
		got, err := s.Decode(r.Prefix, []byte(string(value)))
		if err != nil || string(got.JSON) != storedMap {
			t.Fatalf("%s %v", got.JSON, err)
		}
		return &got.JSON[0] == &raw[0]
	}
	if !same() {
		t.Error("the first read decodes")
	}
	if same() {
		t.Error("the second read does not decode")
	}
	large := []byte(strings.Replace(storedMap, "1", strings.Repeat("1", recentBytes), 1))
	value, _ = s.Encode(r, large)
	if known, _ := s.recent.take(value); known != nil {
		t.Error("a large object is kept")
	}
}

// TestKeep checks that the store preserves the text of documents within an object in protobuf, compacts it in JSON, and
// loses it in YAML.
func TestKeep(t *testing.T) {
	t.Parallel()
	version := &catalog.Version{Name: "v1", New: func() any { return &appsv1.ControllerRevision{} }}
	r := &catalog.Resource{
		Group: "apps", Kind: "ControllerRevision", Prefix: "controllerrevisions", Versions: []*catalog.Version{version},
		Storage: version,
	}
	const (
		before = `{"apiVersion":"apps/v1","data":`
		after  = `,"kind":"ControllerRevision","metadata":{"name":"x"},"revision":1}`
		raw    = before + `{"a":1,"b":2}` + after
	)
	for _, test := range []struct {
		media    string
		sent     []string
		want     []string
		contains string // in the stored bytes
	}{
		{codec.Protobuf, []string{`{"b": 2, "a": 1.0}`}, []string{`{"b": 2, "a": 1.0}`}, `{"b": 2, "a": 1.0}`},
		{codec.Protobuf, []string{`{"b": 2}`, `{"a": 1, "b": 2}`}, []string{`{"a": 1, "b": 2}`}, `{"a": 1, "b": 2}`},
		{codec.Protobuf, []string{`{"a":1,"b":2}`}, nil, `{"a":1,"b":2}`},
		{codec.Protobuf, nil, nil, `{"a":1,"b":2}`},
		{codec.JSON, []string{`{"b": 2, "a": 1.0}`}, []string{`{"b":2,"a":1.0}`}, before + `{"b":2,"a":1.0}` + after},
		{codec.JSON, []string{`{"a": 1, "b": 2}`}, nil, raw},
		{codec.JSON, nil, nil, raw},
		{CompressedJSON, []string{`{"b": 2, "a": 1.0}`}, []string{`{"b":2,"a":1.0}`}, `2,"a":1.0`},
		{codec.YAML, []string{`{"b": 2, "a": 1}`}, nil, "  a: 1\n  b: 2\n"},
	} {
		s := NewStoring([]*catalog.Resource{r}, StoringOptions{Media: test.media})
		texts := s.Keep(r, []byte(raw), test.sent, nil)
		if there := s.Keep(r, []byte(raw), nil, test.sent); !slices.Equal(there, texts) {
			t.Errorf("%s of %q there: %q", test.media, test.sent, there)
		}
		if !slices.Equal(texts, test.want) {
			t.Errorf("%s of %q: %q", test.media, test.sent, texts)
		}
		value, as := s.Encode(r, []byte(raw), texts...)
		if !strings.Contains(string(value), test.contains) {
			t.Errorf("%s of %q: %q", test.media, test.sent, value)
		}
		for _, reader := range []*Storing{s, NewStoring([]*catalog.Resource{r}, StoringOptions{})} {
			got, err := reader.Decode(r.Prefix, value)
			if err != nil || string(got.JSON) != raw || got.Encoding != as ||
				!slices.Equal(got.Documents, test.want) {
				t.Errorf("%s of %q: %s, %q %v", test.media, test.sent, got.JSON, got.Documents, err)
			}
		}
	}
	s := NewStoring([]*catalog.Resource{r}, StoringOptions{})
	for _, broken := range []string{`{"data":`, `{"metadata":1, "data":{}}`} {
		got, err := s.Decode(r.Prefix, []byte(broken))
		if err != nil || string(got.JSON) != broken || got.Documents != nil {
			t.Errorf("%s: %s %q %v", broken, got.JSON, got.Documents, err)
		}
	}
}
