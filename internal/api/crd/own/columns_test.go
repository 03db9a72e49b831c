package own

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// definition decodes a definition in YAML.
func definition(t *testing.T, text string) object.Object {
	t.Helper()
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object.Object)
}

func TestTakeColumns(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"taken": {
			`{metadata: {}, spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A, expression: self.a}]}]}}`,
			`{metadata: {annotations: {bowsprit.dev/printer-columns: '{"v1":{"A":"self.a"}}'}},
				spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A}]}]}}`,
		},
		"replaced": {
			`{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: b, B: c}}"}},
				spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A, expression: self.a}]}]}}`,
			`{metadata: {annotations: {bowsprit.dev/printer-columns: '{"v1":{"A":"self.a","B":"c"}}'}},
				spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A}]}]}}`,
		},
		"as written": { // the text of the annotation stays
			`{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: self.a}}"}},
				spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A, expression: self.a}]}]}}`,
			`{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: self.a}}"}},
				spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A}]}]}}`,
		},
		"v1beta1": {
			`{metadata: {}, spec: {version: v2, additionalPrinterColumns: [{name: A, expression: self.a}]}}`,
			`{metadata: {annotations: {bowsprit.dev/printer-columns: '{"v2":{"A":"self.a"}}'}},
				spec: {version: v2, additionalPrinterColumns: [{name: A}]}}`,
		},
		"left for the validation": {
			`{metadata: {}, spec: {versions: [{name: v1, additionalPrinterColumns: [
				{name: A, expression: 5}, {name: B, expression: self.b, jsonPath: .b}, {name: C, expression: ""}]}]}}`,
			`{metadata: {}, spec: {versions: [{name: v1, additionalPrinterColumns: [
				{name: A, expression: 5}, {name: B, expression: self.b, jsonPath: .b}, {name: C}]}]}}`,
		},
		"wrong types": {`{metadata: {annotations: 5}, spec: {versions: 5, additionalPrinterColumns: x}}`,
			`{metadata: {annotations: 5}, spec: {versions: 5, additionalPrinterColumns: x}}`},
	} {
		got := definition(t, test.before)
		TakeColumns(got)
		if want := definition(t, test.after); !codec.Equal(any(got), any(want)) {
			t.Errorf("%s: got %s, want %s", name, codec.AppendJSON(nil, got), codec.AppendJSON(nil, want))
		}
	}
}

func TestDropColumns(t *testing.T) {
	old := definition(t, `{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: a, B: b}}"}},
		spec: {versions: [{name: v1, additionalPrinterColumns: [{name: A}, {name: B}]}]}}`)
	obj := definition(t, `{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: a, B: b, C: c}}"}},
		spec: {versions: [{name: v1, additionalPrinterColumns: [{name: B}]}]}}`)
	DropColumns(obj, old)
	// A new expression without a column stays, and is refused.
	if got := ColumnsOf(obj); got != `{"v1":{"B":"b","C":"c"}}` {
		t.Errorf("got %s", got)
	}
	obj = definition(t, `{metadata: {annotations: {bowsprit.dev/printer-columns: "{v1: {A: a, B: b}}"}},
		spec: {versions: [{name: v2, additionalPrinterColumns: [{name: B}]}]}}`)
	if DropColumns(obj, old); ColumnsOf(obj) != "" {
		t.Errorf("got %s", ColumnsOf(obj))
	}
}
