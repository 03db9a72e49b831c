package reshape

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

const oneField = `
v1: {type: object, properties: {old: {type: string}, only: {type: string}}}
v2: {type: object, properties: {new: {type: string}}}
`

const oneMove = `steps: [{from: v1, to: v2, rules: [{move: old, to: new}]}]`

// TestStashIsBounded checks that a conversion fails if its stash exceeds the size of annotations.
func TestStashIsBounded(t *testing.T) {
	p := plan(t, schemas(t, oneField), oneMove)
	for size, fails := range map[int]bool{maxStash / 2: false, maxStash: true} {
		obj := object.Object{"old": "x", "only": strings.Repeat("y", size)}
		err := p.Convert(obj, "v1", "v2")
		if (err != nil) != fails {
			t.Errorf("%d bytes: %v", size, err)
		}
		if fails && !strings.Contains(err.Error(), "at most 262144 are allowed") {
			t.Error(err)
		}
	}
}

// TestConfigIsBounded checks the bounds of configurations.
func TestConfigIsBounded(t *testing.T) {
	rule := `{"move":"a","to":"b"}`
	deep := rule
	for range maxDepth {
		deep = `{"forEach":"a","rules":[` + deep + `]}`
	}
	step := func(rules string) string { return `{"steps":[{"from":"a","to":"b","rules":[` + rules + `]}]}` }
	list := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	for want, text := range map[string]string{
		"at most 262144 are allowed": strings.Repeat(" ", maxConfig+1),
		"more than 2048 rules":       step(list(rule, maxRules+1)),
		"nested more than 8 deep":    step(deep),
		"at most 128 are allowed":    `{"steps":[` + list(`{"from":"v1","to":"v2"}`, maxSteps+1) + `]}`,
		"must name 1 to 16 fields":   step(`{"split":"a","to":[` + list(`"x"`, 17) + `]}`),
		"at most 64 names":           step(`{"move":"a` + strings.Repeat(".a", 64) + `"}`),
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestAdded checks that default values add a bounded number of bytes to an object.
func TestAdded(t *testing.T) {
	p := plan(t, schemas(t, `
v1: {type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}}
v2: {type: object, properties: {l: {type: array, items: {type: object,
  properties: {a: {type: string}, b: {type: string}}}}}}
`), `steps: [{from: v1, to: v2, rules: [{forEach: l, rules: [{constant: b, value: `+strings.Repeat("x", 4000)+`}]}]}]`)
	items := make([]any, maxAdded/4000+1)
	for i := range items {
		items[i] = object.Object{}
	}
	err := p.Convert(object.Object{"l": items}, "v1", "v2")
	if err == nil || !strings.Contains(err.Error(), "the rules add more than 4194304 bytes") {
		t.Error(err)
	}
}

// TestSensitive checks that no rule takes a sensitive value to a place where it is not masked.
func TestSensitive(t *testing.T) {
	of := func(marked string, names ...string) *schema.Schema {
		props := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range names {
			props[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		s, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: props},
			schema.Options{Sensitive: func(path []string) bool { return slices.Equal(path, []string{marked}) }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, test := range []struct {
		v1, v2 *schema.Schema
		rule   string
		want   string // "" if it is accepted
	}{
		{of("secret", "secret"), of("password", "password"), `{move: secret, to: password}`, ""},
		{of("secret", "secret"), of("", "password"), `{move: secret, to: password}`, "sensitive in one version only"},
		{of("secret", "secret", "a"), of("", "a"), `{move: a}`, "the stash is not masked"},
		{of("secret", "secret"), of("secret", "secret"), `{enum: secret, values: {a: b}}`, "may need the stash"},
		{of("secret", "secret"), of("secret", "secret"), `{default: secret, value: x}`, "not for a sensitive field"},
		{of("secret", "secret"), of("", "a"), `{move: secret, to: "metadata.labels['a']"}`, "sensitive in one version only"},
	} {
		c, err := Parse(`steps: [{from: v1, to: v2, rules: [` + test.rule + `]}]`)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(c, map[string]*schema.Schema{"v1": test.v1, "v2": test.v2})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.rule, err, test.want)
		}
	}
}

// TestDefaultsOfItems checks that an item keeps its stash if a client writes it back with the defaults of its version.
func TestDefaultsOfItems(t *testing.T) {
	of := schemas(t, `
v1: {type: object, properties: {l: {type: array, items: {type: object,
  properties: {old: {type: string}, only: {type: string}}}}}}
v2: {type: object, properties: {l: {type: array, items: {type: object, properties: {new: {type: string},
  more: {type: string, default: d}}}}}}
`)
	p := plan(t, of, `steps: [{from: v1, to: v2, rules: [{forEach: l, rules: [{move: old, to: new}]}]}]`)
	obj := object.Object{"l": []any{object.Object{"old": "x", "only": "y"}}}
	if err := p.Convert(obj, "v1", "v2"); err != nil {
		t.Fatal(err)
	}
	of["v2"].NormalizeStored(obj) // fills in the default
	if err := p.Convert(obj, "v2", "v1"); err != nil {
		t.Fatal(err)
	}
	if item := object.Objects(obj["l"])[0]; item["only"] != "y" || item["old"] != "x" {
		t.Errorf("the item is %v", item)
	}
}

// TestSensitiveItems checks that a stash has no digest of an item with a sensitive value.
func TestSensitiveItems(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	list := func(kind, field string) *schema.Schema {
		items := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "secret": text, field: text}}
		l := apiextensionsv1.JSONSchemaProps{Type: "array", XListType: &kind,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
		if kind == "map" {
			l.XListMapKeys = []string{"name"}
		}
		s, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"l": l}},
			schema.Options{Sensitive: func(path []string) bool { return slices.Contains(path, "secret") }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for kind, want := range map[string]string{"map": "", "atomic": "items without keys are found by their contents"} {
		c, err := Parse(`steps: [{from: v1, to: v2, rules: [{forEach: l, rules: [{move: a, to: b}]}]}]`)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(c, map[string]*schema.Schema{"v1": list(kind, "a"), "v2": list(kind, "b")})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", kind, err, want)
		}
	}
}
