package cel

import (
	"errors"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// TestQuantities evaluates quantities whose parsing or arithmetic has no bound in Kubernetes' library.
func TestQuantities(t *testing.T) {
	env := kubeEnvironments().StoredExpressionsEnv()
	eval := func(source string) (any, error) {
		ast, issues := env.Compile(source)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := program.Eval(map[string]any{})
		if err != nil {
			return nil, err
		}
		return v.Value(), nil
	}
	for _, text := range []string{
		"1e-1000000000", "1e1000000000", "1e100001", "0e1000000000",
	} {
		for _, source := range []string{
			"isQuantity('" + text + "')", "quantity('" + text + "').isGreaterThan(quantity('1'))",
		} {
			if _, err := eval(source); !errors.Is(err, quantity.ErrTooLarge) {
				t.Errorf("%.60s: got %v", source, err)
			}
		}
	}
	for source, want := range map[string]any{
		"isQuantity('1e-3000000')": true, "isQuantity('1e')": false, "isQuantity('1.5Gi')": true,
		"quantity('1e100000').isGreaterThan(quantity('1e99999'))": true,
		"quantity('1e-3000000').compareTo(quantity('1n'))":        int64(0),
		"quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')": true,
		"quantity('50k').sub(20000).asInteger() == 30000":         true,
	} {
		if got, err := eval(source); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", source, got, err, want)
		}
	}
}
