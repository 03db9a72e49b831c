package registration

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/expr"
)

// mode returns the strictness for an expression: an existing one may use features that the previous release lacks.
func mode(preexisting bool) expr.Mode {
	if preexisting {
		return expr.Stored
	}
	return expr.New
}

// maxConditions is the maximum number of match conditions.
const maxConditions = 64

// checkConditions checks match conditions. old holds the existing expressions.
func checkConditions(
	c *expr.Compiler, list []admissionregistrationv1.MatchCondition, params bool, old map[string]bool, path *field.Path,
) (errs field.ErrorList) {
	if len(list) > maxConditions {
		errs = append(errs, field.TooMany(path, len(list), maxConditions))
	}
	seen := map[string]bool{}
	for i, m := range list {
		at := path.Index(i)
		// The text is compiled without surrounding whitespace, so positions in messages count from there.
		if text := strings.TrimSpace(m.Expression); text == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else {
			e := c.Compile(text, expr.Scope{Params: params, Authorizer: true}, mode(old[text]),
				expr.Bool)
			errs = append(errs, e.Problems(at.Child("expression"), text)...)
		}
		if m.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		errs = append(errs, checkQualifiedName(m.Name, at.Child("name"))...)
		if seen[m.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		}
		seen[m.Name] = true
	}
	return errs
}

func checkQualifiedName(name string, path *field.Path) (errs field.ErrorList) {
	for _, problem := range utilvalidation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

// checkVariables declares the variables in c, one after another.
func checkVariables(
	c *expr.Compiler, list []admissionregistrationv1.Variable, params bool, old map[string]bool, path *field.Path,
) (errs field.ErrorList) {
	for i, v := range list {
		at := path.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			errs = append(errs, field.Required(at.Child("name"), "name is not specified"))
		} else if !expr.IsIdentifier(v.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
			continue
		}
		e := c.Variable(v.Name, v.Expression, expr.Scope{Params: params, Authorizer: true}, mode(old[v.Expression]))
		errs = append(errs, e.Problems(at.Child("expression"), v.Expression)...)
		e.Release() // c keeps the variable
	}
	return errs
}
