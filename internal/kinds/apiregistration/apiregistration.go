// Package apiregistration holds the built-in kind of apiregistration.k8s.io: APIService, which says who serves a
// version of an API group.
//
// The kind has a file of Go, with what it is and the functions that belong to it, and a text beside it with its rules.
// docs/design/kinds.md explains both. What APIServices do is package aggregate, the part that also brings the kind:
// without it there are none.
package apiregistration

import (
	"embed"
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

//go:embed *.txt
var files embed.FS

// text is what the files say, made once.
var text = sync.OnceValue(func() *rule.Text {
	return rule.NewText(files, nil, apiServiceFunctions())
})

// Kinds returns the kinds. Each call makes new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	return text().Resources(
		apiServiceKind(),
	)
}
