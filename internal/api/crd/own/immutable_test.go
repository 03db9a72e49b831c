package own

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// immutableSchemas are schemas of a version before and after TakeImmutable.
var immutableSchemas = map[string]struct{ before, after, errors string }{
	"twice": { // a client that applies its manifest again sends the keyword to a definition with the rules
		`{properties: {a: {x-bowsprit-immutable: true, x-kubernetes-validations: [{rule: self == oldSelf}]}},
			x-kubernetes-validations: [{rule: "!has(oldSelf.a) || has(self.a)"}]}`,
		`{properties: {a: {x-kubernetes-validations: [{rule: self == oldSelf}]}},
			x-kubernetes-validations: [{rule: "!has(oldSelf.a) || has(self.a)"}]}`, "",
	},
	"values of a map": {
		`{properties: {m: {additionalProperties: {x-bowsprit-immutable: true}}}}`,
		`{properties: {m: {additionalProperties: {x-kubernetes-validations: [{rule: self == oldSelf, message: is immutable}]}}}}`,
		"",
	},
	"off": {`{properties: {a: {x-bowsprit-immutable: false}}}`, `{properties: {a: {}}}`, ""},
	"metadata": {
		`{properties: {metadata: {x-bowsprit-immutable: true}}}`, `{properties: {metadata: {x-bowsprit-immutable: true}}}`,
		"spec.versions[0].schema.openAPIV3Schema.properties[metadata].x-bowsprit-immutable: Forbidden: must not be used for " +
			"apiVersion, kind and metadata",
	},
	"a name without a rule": {
		`{properties: {"a b": {x-bowsprit-immutable: true}}}`, `{properties: {"a b": {x-bowsprit-immutable: true}}}`,
		"spec.versions[0].schema.openAPIV3Schema.properties[a b].x-bowsprit-immutable: Forbidden: must not be used for a " +
			"field that validation rules cannot name",
	},
}

func TestTakeImmutable(t *testing.T) {
	const head, tail = `{metadata: {}, spec: {versions: [{name: v1, schema: {openAPIV3Schema: `, `}}]}}`
	for name, test := range immutableSchemas {
		got := definition(t, head+test.before+tail)
		TakeImmutable(got)
		if want := definition(t, head+test.after+tail); !codec.Equal(any(got), any(want)) {
			t.Errorf("%s: got %s, want %s", name, codec.AppendJSON(nil, got), codec.AppendJSON(nil, want))
		}
		text := ""
		if errs := CheckImmutable(got); len(errs) > 0 {
			text = errs.ToAggregate().Error()
		}
		if text != test.errors {
			t.Errorf("%s: got %q, want %q", name, text, test.errors)
		}
	}
}
