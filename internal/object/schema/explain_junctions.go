package schema

import (
	"fmt"
	"slices"
)

func (x *explainer) checkJunctions(n *Node, v any) (passed int) {
	if !n.flags.has(hasJunctions) {
		return 1
	}
	if len(n.AnyOf) > 0 {
		passed += x.checkAny(n.AnyOf, v)
	}
	if len(n.OneOf) > 0 {
		passed += x.checkOne(n.OneOf, v)
	}
	if len(n.AllOf) > 0 {
		passed += x.checkAll(n.AllOf, v)
	}
	if n.Not != nil {
		mark := len(x.failures)
		x.check(n.Not, v, nil)
		matches := len(x.failures) == mark
		x.failures = x.failures[:mark]
		if matches {
			x.general(fmt.Sprintf("%q must not validate the schema (not)", x.path))
		}
	}
	return passed + 1
}

// try checks v against one alternative without reporting its failures.
func (x *explainer) try(n *Node, v any) attempt {
	mark := len(x.failures)
	passed := x.check(n, v, nil)
	a := attempt{passed, slices.Clone(x.failures[mark:])}
	x.failures = x.failures[:mark]
	return a
}

// checkAny accepts the first alternative that matches, or reports the one with the most passed checks.
func (x *explainer) checkAny(nodes []*Node, v any) (passed int) {
	best := attempt{passed: -1}
	for _, n := range nodes {
		a := x.try(n, v)
		if len(a.failures) == 0 {
			return a.passed
		}
		if a.passed > best.passed {
			best = a
		}
	}
	x.general(fmt.Sprintf("%q must validate at least one schema (anyOf)", x.path))
	x.failures = append(x.failures, best.failures...)
	return best.passed
}

// checkOne requires exactly one matching alternative; if none matches, it reports the one with the most passed checks.
func (x *explainer) checkOne(nodes []*Node, v any) (passed int) {
	first, best := attempt{}, attempt{passed: -1}
	fits := 0
	for _, n := range nodes {
		a := x.try(n, v)
		if len(a.failures) == 0 {
			if fits == 0 {
				first = a
			}
			fits++
		} else if fits == 0 && a.passed > best.passed {
			best = a
		}
	}
	switch fits {
	case 1:
		return first.passed
	case 0:
		x.general(fmt.Sprintf("%q must validate one and only one schema (oneOf). Found none valid", x.path))
		x.failures = append(x.failures, best.failures...)
		return best.passed
	}
	x.general(fmt.Sprintf("%q must validate one and only one schema (oneOf). Found %d valid alternatives", x.path,
		fits))
	return 0
}

func (x *explainer) checkAll(nodes []*Node, v any) (passed int) {
	fits := 0
	for _, n := range nodes {
		mark := len(x.failures)
		passed += x.check(n, v, nil)
		if len(x.failures) == mark {
			fits++
		}
	}
	if fits < len(nodes) {
		none := ""
		if fits == 0 {
			none = ". None validated"
		}
		x.general(fmt.Sprintf("%q must validate all the schemas (allOf)%s", x.path, none))
	}
	return passed
}
