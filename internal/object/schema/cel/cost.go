package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// keyNode is the node of a map's keys.
var keyNode = &schema.Node{Type: "string"}

// sizes estimates sizes of values from the bounds in the schema.
type sizes struct {
	self typedNode
}

var _ checker.CostEstimator = sizes{}

// EstimateSize follows the path of the node from self (or oldSelf) through the schema.
func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	p := s.self
	for _, name := range path[1:] {
		var ok bool
		switch name {
		case "@items", "@values":
			if p, ok = p.elem(); !ok {
				return nil
			}
		case "@keys":
			if !p.isMap() || p.node.IntOrString {
				return nil
			}
			p = typedNode{node: keyNode}
		default:
			if p, ok = p.field(name); !ok {
				return nil
			}
		}
	}
	if p.node == keyNode {
		// Kubernetes declares no bound for keys, and its estimates treat that as zero.
		return &checker.SizeEstimate{}
	}
	return &checker.SizeEstimate{Max: p.maxElements()}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// estimate returns the highest cost that a checked expression can have on values at self, in the largest possible
// request.
func (e *environment) estimate(ast *cel.Ast, self typedNode) (uint64, error) {
	c, err := e.env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{self}})
	return c.Max, err
}

// maxRepeats bounds how often a value of minSize bytes fits into a request.
func maxRepeats(minSize int64) uint64 { return uint64(celconfig.MaxRequestSizeBytes / (minSize + 1)) }

// newCostTracker counts costs like kube-apiserver's programs. The options of cel-go's extensions "sets" and "lists" are
// not exported, so their formulas are repeated here; test/oracle/cel compares all of them.
func newCostTracker(limit uint64) func() (*interpreter.CostTracker, error) {
	return func() (*interpreter.CostTracker, error) {
		return interpreter.NewCostTracker(callCosts{}, interpreter.PresenceTestHasCost(false),
			interpreter.CostTrackerLimit(limit))
	}
}

// callCosts is the run-time cost of calls.
type callCosts struct{ kube library.CostEstimator }

// CallCost returns nil where cel-go's own formula applies.
func (c callCosts) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	var cost uint64
	switch overload {
	case "list_sets_contains_list", "list_sets_intersects_list":
		cost = 1 + size(args[0])*size(args[1])
	case "list_sets_equivalent_list":
		cost = 1 + 2*size(args[0])*size(args[1])
	case "list_slice", "lists_range", "list_reverse":
		cost = listCost(1, size(result))
	case "list_flatten", "list_flatten_int":
		depth := 1.0
		if len(args) == 2 {
			if d, ok := args[1].(types.Int); ok {
				depth = float64(d)
			}
		}
		cost = listCost(depth, size(args[0]))
	case "list_distinct":
		cost = pairsCost(args[0])
	default:
		switch {
		case sorts[overload]:
			cost = pairsCost(args[0])
		case sortsByKey[overload]:
			cost = pairsCost(args[1])
		default:
			return c.kube.CallCost(function, overload, args, result)
		}
	}
	return &cost
}

var sorts, sortsByKey = func() (sorts, byKey map[string]bool) {
	sorts, byKey = map[string]bool{}, map[string]bool{}
	for _, t := range []*types.Type{
		types.IntType, types.UintType, types.DoubleType, types.BoolType, types.DurationType, types.TimestampType,
		types.StringType, types.BytesType,
	} {
		sorts["list_"+t.TypeName()+"_sort"] = true
		byKey["list_"+t.TypeName()+"_sortByAssociatedKeys"] = true
	}
	return sorts, byKey
}()

// pairsCost is the cost of comparing all elements of a list with each other. v may be an error instead of a list;
// cel-go's own formula panics then, and the user gets an internal error for a missing field.
func pairsCost(v ref.Val) uint64 {
	n, factor := size(v), 2.0
	if l, ok := v.(traits.Lister); ok && n > 0 {
		if t := l.Get(types.IntZero).Type(); t == types.StringType || t == types.BytesType {
			factor += common.StringTraversalCostFactor
		}
	}
	return listCost(factor, n*n)
}

// listCost is the cost of making a list of n elements.
func listCost(factor float64, n uint64) uint64 {
	return uint64(float64(n)*factor) + 1 + common.ListCreateBaseCost
}

func size(v ref.Val) uint64 {
	if s, ok := v.(traits.Sizer); ok {
		return uint64(s.Size().(types.Int))
	}
	return 1
}
