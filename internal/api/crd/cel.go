package crd

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// NewValidator returns a validator that checks CEL rules.
func NewValidator() *Validator {
	return &Validator{CheckRules: checkRules, DefaultRules: checkDefaultRules}
}

func checkRules(root *schema.Node, path *field.Path, c RuleCheck) field.ErrorList {
	return cel.Check(root, path, cel.CheckOptions{
		PreexistingRules:          c.Rules,
		PreexistingMessages:       c.MessageExpressions,
		SuppressPerExpressionCost: c.Unchanged,
		Skip:                      c.Skip,
		Patterns:                  c.Patterns,
		Done:                      c.Done,
	})
}

// checkDefaultRules evaluates rules twice, for an existing and a new default: rules with oldSelf distinguish the two.
func checkDefaultRules(node *schema.Node, resource bool, path *field.Path, value any, budget int64) (field.ErrorList,
	int64) {
	rules := cel.New(node, resource)
	if rules == nil {
		return nil, budget
	}
	o := cel.EvalOptions{Budget: budget, NoRatchet: true}
	errs, left := rules.EvaluateAt(path, value, value, o)
	if len(errs) > 0 {
		return errs, left
	}
	errs, leftWithout := rules.EvaluateAt(path, value, nil, o)
	return errs, min(left, leftWithout)
}
