package stage

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

// celTextMost is the largest string in bytes that replace or join returns. The cost of a call is charged only after it,
// so a single call must be cheap.
const celTextMost = 1 << 20

// textMacros have replace and join be functions with a bound.
func textMacros() (out []cel.Macro) {
	for name, counts := range map[string][]int{"replace": {2, 3}, "join": {0, 1}} {
		for _, n := range counts {
			out = append(out, cel.ReceiverMacro(name, n,
				func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
					return f.NewCall("@"+name, append([]ast.Expr{target}, args...)...), nil
				}))
		}
	}
	return out
}

// textFunction declares a function of one to four arguments of any type that returns a string.
func textFunction(name string, f func(args ...ref.Val) ref.Val) cel.EnvOption {
	var options []cel.FunctionOpt
	types := []*cel.Type{}
	for _, id := range []string{"1", "2", "3", "4"} {
		types = append(types, cel.DynType)
		options = append(options, cel.Overload(name+id, append([]*cel.Type(nil), types...), cel.StringType))
	}
	return cel.Function(name, append(options, cel.SingletonFunctionBinding(f))...)
}

var errLongText = types.NewErr("it makes a text of more than %d bytes: let it make less", celTextMost)

func replaceText(args ...ref.Val) ref.Val {
	var texts [3]string
	for i := range texts {
		s, ok := args[i].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[i])
		}
		texts[i] = string(s)
	}
	n := -1
	if len(args) == 4 {
		limit, ok := args[3].(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[3])
		}
		n = int(max(-1, min(limit, celTextMost)))
	}
	found := strings.Count(texts[0], texts[1])
	if n >= 0 {
		found = min(found, n)
	}
	if sum(len(texts[0]), product(float64(found), float64(len(texts[2])))) > celTextMost {
		return errLongText
	}
	return types.String(strings.Replace(texts[0], texts[1], texts[2], n))
}

func joinTexts(args ...ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	separator := types.String("")
	if len(args) > 1 {
		if separator, ok = args[1].(types.String); !ok {
			return types.MaybeNoSuchOverloadErr(args[1])
		}
	}
	var out strings.Builder
	for at, first := list.Iterator(), true; at.HasNext() == types.True; first = false {
		s, ok := at.Next().(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		if !first {
			out.WriteString(string(separator))
		}
		out.WriteString(string(s))
		if out.Len() > celTextMost {
			return errLongText
		}
	}
	return types.String(out.String())
}

// prices are the costs of calls beyond 1: as in Kubernetes, and for strings by their length.
type prices struct{ kube library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (p prices) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if function != "@replace" && function != "@join" {
		return p.kube.CallCost(function, overload, args, result)
	}
	cost := uint64(1)
	for _, v := range append(args[:len(args):len(args)], result) {
		if s, ok := v.(traits.Sizer); ok {
			if n, ok := s.Size().(types.Int); ok {
				cost += uint64(n) / 10
			}
		}
	}
	return &cost
}
