package connect

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resource is a resource that supports list.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// Resources returns the resources of a server that can be listed, each once, in its preferred version, by group and
// name. With an error, the groups that do not answer are missing.
func Resources(d discovery.DiscoveryInterface) (all []Resource, err error) {
	lists, err := d.ServerPreferredResources()
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range l.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				all = append(all, Resource{gv.WithResource(r.Name), r.Kind, r.Namespaced, r.Verbs})
			}
		}
	}
	slices.SortFunc(all, func(a, b Resource) int { // the discovery client has them in the order of a map
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return all, err
}
