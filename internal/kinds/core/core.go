// Package core holds the built-in kinds of the core group, and Event of events.k8s.io.
//
// Each kind has a Go file with its definition and functions, and a text file with its columns, defaults and rules.
// docs/design/kinds.md explains both.
package core

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
	return rule.NewText(files, []*rule.Text{pod.Text()}, eventFunctions(), secretFunctions(), configMapFunctions(),
		namespaceFunctions(), endpointsFunctions(), limitRangeFunctions(), nodeFunctions(),
		persistentVolumeFunctions(), persistentVolumeClaimFunctions(), podFunctions(), podTemplateFunctions(),
		replicationControllerFunctions(), resourceQuotaFunctions(), serviceFunctions())
})

// Kinds returns the kinds. Each call creates new values, which a catalog may own.
func Kinds() []*catalog.Resource {
	out := text().Resources(
		namespaceKind(),
		configMapKind(),
		secretKind(),
		eventKind(),
		serviceAccountKind(),
		podKind(),
		bindingKind(),
		componentStatusKind(),
		podTemplateKind(),
		replicationControllerKind(),
		serviceKind(),
		endpointsKind(),
		nodeKind(),
		persistentVolumeKind(),
		persistentVolumeClaimKind(),
		limitRangeKind(),
		resourceQuotaKind(),
	)
	alias := eventAlias()
	for _, r := range out {
		if r.Prefix == alias.Prefix {
			r.Cohabits = catalog.GroupResource{Group: alias.Group, Resource: alias.Plural}
			alias.Cohabits = catalog.GroupResource{Group: r.Group, Resource: r.Plural}
		}
	}
	return append(out, alias)
}

// Namespaces returns the one kind of the group that the server itself relies on.
func Namespaces() []*catalog.Resource { return text().Resources(namespaceKind()) }
