package reshape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestCases converts the objects of testdata/rules. An object returns as it was, unless "returns" has another one.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc := decode(t, string(raw))
		of := schemas(t, encode(t, object.Map(doc, "schemas")))
		p := plan(t, of, encode(t, object.Map(doc, "rules")))
		c, err := Decode(doc["rules"])
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Examples(c); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := p.Prove(t.Context(), 200); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, test := range object.Objects(doc["cases"]) {
			t.Run(object.String(test, "name"), func(t *testing.T) { testCase(t, p, test) })
		}
	}
}

func testCase(t *testing.T, p *Plan, test object.Object) {
	from, to := object.String(test, "from"), object.String(test, "to")
	obj := codec.CloneObject(object.Map(test, "object"))
	if err := p.Convert(obj, from, to); err != nil {
		t.Fatal(err)
	}
	if want := object.Map(test, "becomes"); !codec.Equal(any(tidy(obj)), any(want)) {
		t.Errorf("becomes\n%s\nwant\n%s", encode(t, obj), encode(t, want))
	}
	_, there := object.Map(obj, "metadata", "annotations")[Stash]
	_, here := object.Map(test, "object", "metadata", "annotations")[Stash]
	if here && !there {
		return // a stash that was used or ignored
	}
	if err := p.Convert(obj, to, from); err != nil {
		t.Fatal(err)
	}
	want := object.Map(test, "object")
	if returns := object.Map(test, "returns"); returns != nil {
		want = returns
	}
	if !codec.Equal(any(tidy(obj)), any(want)) {
		t.Errorf("returns\n%s\nwant\n%s", encode(t, obj), encode(t, want))
	}
}

// tidy removes metadata without content.
func tidy(obj object.Object) object.Object {
	if len(object.Map(obj, "metadata")) == 0 {
		delete(obj, "metadata")
	}
	return obj
}

// TestRefusals checks the texts of refused configurations.
func TestRefusals(t *testing.T) {
	raw, err := os.ReadFile("testdata/refused.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc := decode(t, string(raw))
	for _, test := range object.Objects(doc["cases"]) {
		t.Run(object.String(test, "name"), func(t *testing.T) {
			all := object.Map(test, "schemas")
			if all == nil {
				all = object.Map(doc, "schemas")
			}
			got := refusal(t, encode(t, all), test["rules"])
			if want := object.String(test, "text"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// refusal returns the error of a configuration.
func refusal(t *testing.T, all string, rules any) string {
	t.Helper()
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(string(text))
	if err != nil {
		return err.Error()
	}
	p, err := New(c, schemas(t, all))
	if err != nil {
		return err.Error()
	}
	if err := p.Examples(c); err != nil {
		return err.Error()
	}
	if _, err := p.Prove(t.Context(), 50); err != nil {
		text, _, _ := strings.Cut(err.Error(), " in v")
		_, text, _ = strings.Cut(text, "}: ")
		return "proof: " + text
	}
	return ""
}
