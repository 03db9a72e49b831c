// Package apiextensions holds the built-in kinds of apiextensions.k8s.io.
//
// Each kind has a file of Go, with what it is and the functions that belong to it, and a text beside it with its
// columns, defaults and rules. docs/design/kinds.md explains both.
package apiextensions

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// Kinds returns the kinds. Each call makes new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	return rule.NoText().Resources(
		definitionKind(),
	)
}
