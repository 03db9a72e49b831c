// Package network holds the built-in kinds of networking.k8s.io and discovery.k8s.io.
//
// Each kind has a Go file with its definition and functions, and a text file with its columns, defaults and rules.
// docs/design/kinds.md explains both.
package network

import (
	"embed"
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

//go:embed *.txt
var files embed.FS

// text is the parsed text files, read once.
var text = sync.OnceValue(func() *rule.Text {
	return rule.NewText(files, []*rule.Text{pod.Text()}, endpointSliceFunctions(), ingressFunctions(),
		ingressClassFunctions(), networkPolicyFunctions(), serviceCIDRFunctions())
})

// Kinds returns the kinds. Each call creates new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	return text().Resources(
		ingressKind(),
		ingressClassKind(),
		networkPolicyKind(),
		ipAddressKind(),
		serviceCIDRKind(),
		endpointSliceKind(),
	)
}
