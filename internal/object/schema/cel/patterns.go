package cel

import (
	"strings"

	celast "github.com/google/cel-go/common/ast"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// matchers are the functions with a pattern as their last or last but one argument.
var matchers = map[string]bool{"matches": true, "find": true, "findAll": true}

// takePatterns takes the patterns in an expression out of a budget: the literals, which are compiled and kept with the
// expression. Patterns without repeat counts are not counted, because they are no larger than their text.
func takePatterns(b *format.Patterns, source string) (err error) {
	if !strings.Contains(source, "{") || !strings.Contains(source, "matches") && !strings.Contains(source, "find") {
		return nil
	}
	ast, issues := storedExpressions().env.Parse(source)
	if issues.Err() != nil {
		return nil // compiling reports it
	}
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if err != nil || e.Kind() != celast.CallKind || !matchers[e.AsCall().FunctionName()] {
			return
		}
		for _, arg := range e.AsCall().Args() {
			if arg.Kind() != celast.LiteralKind {
				continue
			}
			if text, ok := arg.AsLiteral().Value().(string); ok && err == nil {
				err = b.Take(text)
			}
		}
	}))
	return err
}
