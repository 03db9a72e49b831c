package token

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/cel"
)

// TestQuantities has a claim with a quantity that the library would compute with for years.
func TestQuantities(t *testing.T) {
	t.Parallel()
	result, err := compiler().CompileClaimsExpression(&cel.ClaimMappingExpression{
		Expression: "quantity(claims.q).isGreaterThan(quantity('1')) ? 'large' : 'small'",
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"2": "large", "0.5": "small", "1e-1000000000": "quantity: the text"} {
		v, _, err := result.Program.Eval(map[string]any{"claims": map[string]any{"q": text}})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got, _ = v.Value().(string)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
