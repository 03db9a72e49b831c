package reshape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
)

const keepSchemas = `
v1: {type: object, properties: {bucket: {type: string, minLength: 2}, size: {type: string}, old: {type: string}}}
v2: {type: object, required: [bytes], properties: {buckets: {type: array, items: {type: string, maxLength: 5}},
  bytes: {type: integer}}}
`

const keepRules = `
steps:
- from: v1
  to: v2
  rules:
  - {wrap: bucket, to: buckets}
  - {type: size, to: bytes}
  - {delete: old, loss: acknowledged}
`

// TestKeep checks the reasons against stored objects, none of which has a value of the object.
func TestKeep(t *testing.T) {
	p := plan(t, schemas(t, keepSchemas), keepRules)
	for _, test := range []struct{ name, version, object, want string }{
		{"good", "v1", `{bucket: abc, size: "3"}`, ""},
		{"lost with consent", "v1", `{bucket: abc, size: "3", old: secret}`, ""},
		{"undeclared", "v1", `{bucket: abc, size: "3", undeclared: secret}`, ""},
		{"invalid", "v1", `{bucket: secret, size: "3"}`, "in version v2 it is invalid: buckets[0]: Too long"},
		{"invalid before", "v1", `{bucket: "s", size: "3"}`, ""},
		{"invalid before and after", "v2", `{buckets: [secret], bytes: 3}`, ""},
		{"without a form", "v1", `{size: secret}`, "in version v2 it has no form: steps[0].rules[1]: the " +
			"value of size has no value in bytes"},
		{"stash", "v1", `{metadata: {annotations: {bowsprit.dev/conversion-stash: '{"v2":{"buckets":[["abc","b"]]}}'}},
			bucket: abc, size: "3"}`, ""},
		{"stash of a client", "v1", `{metadata: {annotations: {bowsprit.dev/conversion-stash: '{"v2":{"none":["secret"]}}'}},
			bucket: abc, size: "3"}`, ""},
		{"no stash at all", "v1", `{metadata: {annotations: {bowsprit.dev/conversion-stash: 'secret'}}, size: "3"}`, ""},
		{"another version", "v3", `{}`, "the definition has no version v3 with a schema"},
	} {
		got := ""
		if err := p.Keep(decode(t, test.object), test.version); err != nil {
			got = err.Error()
		}
		if got != test.want || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestKeepDetectsBrokenPlans breaks a plan so that a value gets lost.
func TestKeepDetectsBrokenPlans(t *testing.T) {
	p := plan(t, schemas(t, keepSchemas), keepRules)
	for _, r := range p.steps[0].level.transfers {
		if !r.lossy && r.slots[first] != nil && r.slots[first][0].key == "bucket" {
			r.exact, r.operation.backward = true, none
		}
		r.lossy = false
	}
	err := p.Keep(decode(t, `{bucket: abc, size: "3"}`), "v1")
	if want := "in version v2 it loses the value of bucket, and does not return as it was"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestKeepGenerated checks that no generated object of the rules in testdata is refused.
func TestKeepGenerated(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no rules", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc := decode(t, string(raw))
		p := plan(t, schemas(t, encode(t, object.Map(doc, "schemas"))), encode(t, object.Map(doc, "rules")))
		for _, version := range p.versions {
			g := NewGenerator(7)
			for range 50 {
				obj := g.Object(p.schemas[version])
				if obj == nil {
					break
				}
				text := shorten(obj)
				if err := p.Keep(obj, version); err != nil {
					t.Errorf("%s: %s of %s: %v", file, text, version, err)
				}
			}
		}
	}
}

// TestDifference checks the paths of differences.
func TestDifference(t *testing.T) {
	for _, test := range [][3]string{
		{`{a: 1}`, `{a: 1}`, ""},
		{`{a: {b: [1, {c: 2}]}}`, `{a: {b: [1, {c: 3}]}}`, "a.b[1].c"},
		{`{a: {b: [1]}}`, `{a: {b: [1, 2]}}`, "a.b"},
		{`{a: {b: 1}}`, `{a: {}}`, "a.b"},
		{`{a: {}}`, `{a: {}, c: null}`, "c"},
		{`{a: {}}`, `{a: []}`, "a"},
	} {
		if got := difference(decode(t, test[0]), decode(t, test[1])); got != test[2] {
			t.Errorf("%s and %s differ at %q, want %q", test[0], test[1], got, test[2])
		}
	}
}
