package openapi

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// sameKind checks that appendKind's output equals the output of kind and appendSchema byte for byte.
func sameKind(t *testing.T, p published) {
	t.Helper()
	got, err := p.appendKind(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.kind()
	if err != nil {
		t.Fatal(err)
	}
	want, err := appendSchema(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		from := max(0, at-60)
		t.Fatalf("%s: from byte %d\ngot  %.200s\nwant %.200s", p.resource.Kind, at, got[from:], want[from:])
	}
}

// TestAppendProps encodes random schemas, with sensitive fields in some of them, in both ways.
func TestAppendProps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // reproducible
	secret := map[string]any{sensitive.Keyword: true}
	masks := []*sensitive.Fields{nil, sensitive.Of(secret), sensitive.Of(map[string]any{
		"properties": map[string]any{"kind": secret, "b": map[string]any{
			"properties": map[string]any{"a": secret}, "additionalProperties": secret,
		}},
		"items": secret, "additionalProperties": map[string]any{"items": secret},
	})}
	for i := range 3000 {
		props := randomProps(r, 4)
		props.Type = "object"
		v := &catalog.Version{
			Name: "v1", Source: func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil },
			Sensitive: func() (*sensitive.Fields, error) { return masks[i%len(masks)], nil },
		}
		sameKind(t, published{
			resource: &catalog.Resource{Group: "example.com", Kind: "A", ListKind: "AList", Plural: "as"}, version: v,
		})
	}
}

// TestAppendRealKinds encodes the definitions of well-known projects in both ways.
func TestAppendRealKinds(t *testing.T) {
	t.Parallel()
	eachKind(t, real(t, "*.yaml").Snapshot(), func(p published) { sameKind(t, p) })
}

// TestAppendPath compares paths with encoding/json's output.
func TestAppendPath(t *testing.T) {
	t.Parallel()
	m, paths := loadModels(), 0
	same := func(p published) {
		for _, at := range p.paths(m) {
			paths++
			want, err := json.Marshal(at.v3())
			if err != nil {
				t.Fatal(err)
			}
			if got := at.appendV3(nil, m); string(got) != string(want) {
				t.Fatalf("%s:\ngot  %s\nwant %s", at.path, got, want)
			}
		}
	}
	eachKind(t, catalog.New(crontabs(t, "stable.example.com", 1), namespaces(t)).Snapshot(), same)
	odd := crontabs(t, "a.example.com", 1)
	odd.Kind, odd.ListKind = "Ärger<&>", "L\u2028"
	same(published{resource: odd, version: odd.Versions[0]})
	if paths < 10 {
		t.Errorf("only %d paths", paths)
	}
}

func eachKind(t *testing.T, snap *catalog.Snapshot, f func(published)) {
	t.Helper()
	for _, g := range snap.Groups() {
		for _, gv := range g.Versions {
			for _, r := range gv.Resources {
				f(published{resource: r, version: r.Version(gv.Name)})
			}
		}
	}
}

// randomProps returns a random schema with all keywords of definitions, the usual ones more often.
func randomProps(r *rand.Rand, depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{}
	some := func(one int, f func()) {
		if r.IntN(one) == 0 {
			f()
		}
	}
	texts := []string{"a", `"<&>"`, "über\u2028", "a\n\x00", "\\"}
	text := func() string { return texts[r.IntN(len(texts))] }
	raws := []string{`null`, `true`, `1152921504606846976`, `1.50`, `"x<\u00e9"`, `[]`, `{"b":[1.0,null],"a":"&"}`}
	raw := func() *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raws[r.IntN(len(raws))])} }
	number, length, yes := 0.25*float64(r.IntN(99)), int64(r.IntN(9)), r.IntN(2) == 0
	for _, f := range []func(){
		func() { p.Type = []string{"object", "string", "array"}[r.IntN(3)] },
		func() { p.Description = text() }, func() { p.Title = text() }, func() { p.Format = text() },
		func() { p.Default = raw() }, func() { p.Enum = []apiextensionsv1.JSON{*raw(), *raw()} },
		func() { p.Required = []string{text(), "x"} }, func() { p.Pattern = text() },
		func() { p.XPreserveUnknownFields = &yes }, func() { p.XListType = new(text()) },
		func() { p.XListMapKeys = []string{"a", text()} }, func() { p.XMapType = new(text()) },
		func() { p.XValidations = apiextensionsv1.ValidationRules{{Rule: text(), OptionalOldSelf: &yes}} },
		func() { p.Maximum, p.ExclusiveMaximum = &number, yes },
		func() { p.Minimum, p.ExclusiveMinimum = &number, yes },
		func() { p.MaxLength, p.MinLength = &length, &length }, func() { p.MaxItems, p.MinItems = &length, &length },
		func() { p.MaxProperties, p.MinProperties = &length, &length }, func() { p.MultipleOf = &number },
		func() { p.Nullable, p.UniqueItems = true, yes },
	} {
		some(5, f)
	}
	some(12, func() { p.XIntOrString = true })
	some(15, func() { p.XEmbeddedResource = true })
	some(40, func() { p.Example = raw() })
	some(40, func() { p.ExternalDocs = &apiextensionsv1.ExternalDocumentation{URL: text()} })
	some(40, func() { p.Ref = new("#/x") })
	if depth == 0 {
		return p
	}
	child := func() *apiextensionsv1.JSONSchemaProps { return randomProps(r, depth-1) }
	list := func() []apiextensionsv1.JSONSchemaProps { return []apiextensionsv1.JSONSchemaProps{*child(), *child()} }
	some(4, func() { p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: child()} })
	some(30, func() { p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{} })
	some(12, func() { p.AllOf = list() })
	some(12, func() { p.AnyOf = list() })
	some(12, func() { p.OneOf = list() })
	some(12, func() { p.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}} })
	some(12, func() { p.Not = child() })
	some(6, func() { p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: yes} })
	some(6, func() { p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: child()} })
	some(2, func() {
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"kind": *child(), "b": *child(), text(): *child()}
	})
	some(30, func() { p.Properties = map[string]apiextensionsv1.JSONSchemaProps{} })
	return p
}
