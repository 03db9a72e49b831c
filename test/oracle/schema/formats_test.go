package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// TestFormatsMatchOracle compares the checks of all formats with upstream's registry, on the samples of every format,
// on random edits of them, and on random text. ORACLE_FORMATS is the number of strings for each format.
func TestFormatsMatchOracle(t *testing.T) {
	count := fixture.Setting("ORACLE_FORMATS", 20000)
	var all []string
	for _, list := range samples {
		all = append(all, list...)
	}
	all = append(all, texts...)
	for name := range samples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			our, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"s": {Type: "string", Format: name},
				}}, schema.Options{})
			if err != nil {
				t.Fatal(err)
			}
			g := &generator{Rand: rand.New(rand.NewPCG(3, uint64(len(name))))}
			for i := range count {
				text := pick(g, all)
				if i%2 == 0 {
					text = pick(g, samples[name])
				}
				text = g.damage(text)
				ok := len(our.Validate(map[string]any{"s": text}, nil)) == 0
				if up := strfmt.Default.Validates(name, text); ok != up {
					t.Errorf("%q: ours %v, upstream %v", text, ok, up)
				}
			}
		})
	}
}

// damage edits text a little.
func (g *generator) damage(text string) string {
	out := []rune(text)
	for range g.IntN(4) {
		i := 0
		if len(out) > 0 {
			i = g.IntN(len(out))
		}
		c := pick(g, []rune("0123456789abcfzAFTtZz-+:./@ #()=,[]{}_µé☃\n\tX%"))
		switch {
		case len(out) > 0 && g.in(30):
			out = append(out[:i], out[i+1:]...)
		case len(out) > 0 && g.in(50):
			out[i] = c
		default:
			out = append(out[:i], append([]rune{c}, out[i:]...)...)
		}
	}
	return string(out)
}

// TestNumbers compares bounds and integer detection on numbers near the places where floats and integers part ways.
func TestNumbers(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(5, 5))}
	number := func() any {
		switch g.IntN(6) {
		case 0:
			return int64(g.Uint64())
		case 1:
			return float64(g.IntN(1000)) / float64(1+g.IntN(64))
		case 2:
			return float64(int64(1)<<g.IntN(63)) + pick(g, []float64{0, 1e-9, 1e-6, 0.5, -1e-6})
		case 3:
			return pick(g, floats)
		case 4:
			return -g.Float64() * float64(int64(1)<<g.IntN(60))
		}
		return g.integer()
	}
	asFloat := func(v any) *float64 {
		if i, ok := v.(int64); ok {
			return some(float64(i))
		}
		return some(v.(float64))
	}
	for i := range fixture.Setting("ORACLE_NUMBERS", 20000) {
		p := apiextensionsv1.JSONSchemaProps{Type: pick(g, []string{"integer", "number"})}
		p.Format = pick(g, []string{"", "int32", "int64", "float", "double"})
		if g.in(40) {
			p.Maximum, p.ExclusiveMaximum = asFloat(number()), g.in(50)
		}
		if g.in(40) {
			p.Minimum, p.ExclusiveMinimum = asFloat(number()), g.in(50)
		}
		if g.in(40) {
			p.MultipleOf = asFloat(number())
		}
		if g.in(20) {
			p.Enum = []apiextensionsv1.JSON{raw(number()), raw(number())}
		}
		props := &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"n": p},
		}
		up, err := newUpstream(props, false)
		if err != nil {
			t.Fatal(err)
		}
		our, err := schema.Compile(props, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := &comparison{T: t, props: props, up: up, our: our}
		for range 4 {
			text, _ := json.Marshal(map[string]any{"n": number()})
			obj := decode(text).(map[string]any)
			c.name = "number " + string(text)
			c.errors("create", obj, nil, our.Validate(obj, nil), up.validate(obj, nil))
		}
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}
