package reshape

import (
	"os"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// TestPropose compares the proposals for the pairs of schemas in testdata/proposals.yaml.
func TestPropose(t *testing.T) {
	raw, err := os.ReadFile("testdata/proposals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range object.Objects(decode(t, string(raw))["cases"]) {
		t.Run(object.String(test, "name"), func(t *testing.T) {
			of := schemas(t, encode(t, object.Map(test, "schemas")))
			p, err := Propose(t.Context(), [2]string{"v1", "v2"}, [2]*schema.Schema{of["v1"], of["v2"]})
			if err != nil {
				t.Fatal(err)
			}
			var rules []any
			for _, r := range p.Rules {
				rules = append(rules, r.Rule)
				if r.Why == "" {
					t.Errorf("no reason for %v", r.Rule)
				}
			}
			want, _ := test["rules"].([]any)
			if !codec.Equal(any(rules), any(want)) && len(rules)+len(want) > 0 {
				t.Errorf("rules\n%s\nwant\n%s", codec.AppendJSON(nil, rules), codec.AppendJSON(nil, want))
			}
			for name, got := range map[string][]string{"kept": p.Alone, "open": p.Open} {
				var lines []string
				list, _ := test[name].([]any)
				for _, v := range list {
					lines = append(lines, v.(string))
				}
				if strings.Join(got, "\n") != strings.Join(lines, "\n") {
					t.Errorf("%s: %q, want %q", name, got, lines)
				}
			}
		})
	}
}

// TestProposeNothing checks that schemas without a difference need no rules.
func TestProposeNothing(t *testing.T) {
	of := schemas(t, "v1: {type: object, properties: {a: {type: string}}}")
	p, err := Propose(t.Context(), [2]string{"v1", "v2"}, [2]*schema.Schema{of["v1"], of["v1"]})
	if err != nil || len(p.Rules)+len(p.Alone) > 0 {
		t.Error(p, err)
	}
}
