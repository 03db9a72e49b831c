package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// largestExponent is the largest exponent of a quantity in an expression. Each function on a quantity writes out all of
// its digits and counts as one step: with 100,000 digits that takes about a millisecond.
const largestExponent = 100_000

// Quantities returns options for an environment that has Kubernetes' functions. With them quantity and isQuantity
// measure a text before they parse it, and end the expression with an error if that would take long.
func Quantities() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("quantity", cel.Overload("string_to_quantity", []*cel.Type{cel.StringType},
			apiservercel.QuantityType, cel.UnaryBinding(parseQuantity))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", []*cel.Type{cel.StringType},
			cel.BoolType, cel.UnaryBinding(isQuantity))),
	}
}

func parseQuantity(arg ref.Val) ref.Val {
	text, ok := arg.Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	if err := quantity.Check(text, largestExponent); err != nil {
		return types.NewErr("quantity: the text %w", err)
	}
	q, err := quantity.Parse(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &q}
}

func isQuantity(arg ref.Val) ref.Val {
	text, ok := arg.Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	if err := quantity.Check(text, largestExponent); err != nil {
		return types.NewErr("isQuantity: the text %w", err)
	}
	_, err := quantity.Parse(text)
	return types.Bool(err == nil)
}
