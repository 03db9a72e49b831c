package core

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// basic validates an amount as Kubernetes did before it had words for more.
func basic(val *rule.Validation, v any, path *field.Path) {
	if q := rule.Quantity(v); q.Value() < 0 {
		val.Invalid(path, q.Value(), "must be a valid resource quantity")
	}
}

// changed shows the difference between two values of a type.
func changed[T any](was, now any) string {
	return fmt.Sprint(rule.Difference(rule.As[T](was), rule.As[T](now)))
}
