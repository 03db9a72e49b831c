// Package apiregistration holds the built-in kind of apiregistration.k8s.io: APIService, which names the server of a
// version of an API group.
//
// The kind has a Go file with its definition and functions, and a text file with its rules. docs/design/kinds.md
// explains both. Package aggregation implements APIServices and adds the kind as a part: without it there are none.
package apiregistration

import (
	"embed"
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

//go:embed *.txt
var files embed.FS

// text is the parsed text files, read once.
var text = sync.OnceValue(func() *rule.Text {
	return rule.NewText(files, nil, apiServiceFunctions())
})

// Kinds returns the kinds. Each call creates new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	return text().Resources(
		apiServiceKind(),
	)
}
