// Package auth holds the built-in kinds of authentication.k8s.io and authorization.k8s.io.
//
// Each kind has a Go file with its definition and functions, and a text file with its columns, defaults and rules.
// docs/design/kinds.md explains both.
package auth

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// Kinds returns the kinds. Each call creates new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	return rule.NoText().Resources(
		selfSubjectReviewKind(),
		tokenReviewKind(),
		localSubjectAccessReviewKind(),
		selfSubjectAccessReviewKind(),
		selfSubjectRulesReviewKind(),
		subjectAccessReviewKind(),
	)
}
