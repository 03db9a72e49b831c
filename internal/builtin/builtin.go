// Package builtin holds the kinds that ship with the server: namespaces, config maps, secrets, events, service accounts,
// leases and CustomResourceDefinition itself.
//
// Nothing on the path of a request knows a built-in kind by name. Resources gives each as a catalog.Resource, the same
// thing that a CustomResourceDefinition becomes, and what a schema cannot say stands in its catalog.Rules. A kind is an
// entry in kinds.go, a schema under schemas/ that package gen derives from the published Go types, and, if it needs any,
// a file of rules named after it.
//
// Rules are pure and safe for concurrent use. Those that change an object work on its decoded JSON in place; those that
// judge it read it through its Go type, which Decode has proven to fit. Error texts, field paths and their order are
// kube-apiserver's (pkg/apis/core/validation and pkg/registry/core of Kubernetes 1.36).
package builtin

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// Resources returns the built-in kinds. Each call makes new values, which a catalog may own.
func Resources() []*catalog.Resource {
	var out []*catalog.Resource
	for _, k := range kinds() {
		out = append(out, k.resource())
	}
	return out
}

// kind is what is known about a built-in kind beside its schema.
type kind struct {
	group, version string
	kind, plural   string
	short          []string
	categories     []string
	clusterScoped  bool
	// prefix is where kube-apiserver keeps the kind in etcd, if that is not the plural.
	prefix string
	// priority of the group in discovery: groupPriorityMinimum of kube-apiserver's own APIService objects.
	priority int
	status   bool
	// generation is true if metadata.generation is maintained.
	generation bool
	// noDeleteCollection is true for the kinds that cannot be deleted as a collection.
	noDeleteCollection bool
	// new returns a pointer to a fresh value of the Go type.
	new     func() any
	columns []catalog.Column
	rules   *catalog.Rules
}

func (k kind) resource() *catalog.Resource {
	v := &catalog.Version{
		Name:     k.version,
		Served:   true,
		Columns:  k.columns,
		Status:   k.status,
		Priority: 1,
		New:      k.new,
	}
	root := typeID(k.new())
	v.Source = func() (*apiextensionsv1.JSONSchemaProps, error) { return source(root) }
	r := &catalog.Resource{
		Group:         k.group,
		Plural:        k.plural,
		Singular:      singular(k.kind),
		Kind:          k.kind,
		ListKind:      k.kind + "List",
		ShortNames:    k.short,
		Categories:    k.categories,
		Namespaced:    !k.clusterScoped,
		Versions:      []*catalog.Version{v},
		Storage:       v,
		Prefix:        k.prefix,
		Served:        true,
		Rules:         k.rules,
		GroupPriority: k.priority,
		NoGeneration:  !k.generation,
	}
	if r.Prefix == "" {
		r.Prefix = k.plural
	}
	if k.noDeleteCollection {
		r.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return r
}
