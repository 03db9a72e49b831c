package connect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Named returns the resource that a word names, in the preferred version of a resource that can be listed.
func Named(d discovery.DiscoveryInterface, word string) (*Resource, error) {
	a, _, _, err := FindResource(d, word)
	if err != nil {
		return nil, err
	}
	all, _ := Resources(d) // without the groups that do not respond
	for _, one := range all {
		if one.Resource == a.Resource && one.Group == a.Group {
			return &one, nil
		}
	}
	return nil, fmt.Errorf("the server has no resource %q: \"bowsprit kubectl api-resources\" lists all", word)
}

// FindResource returns the resource that a word names: pods, po, pod, deployments.apps, deployments.v1.apps, each
// perhaps with a subresource. For a name that the server does not have, known is false, and the attributes have
// that name: a rule may name a resource before its definition exists. An error means that the server answers no
// discovery request.
func FindResource(client discovery.DiscoveryInterface, word string) (
	a *authorizationv1.ResourceAttributes, namespaced, known bool, err error,
) {
	word, sub, _ := strings.Cut(word, "/")
	name, group, _ := strings.Cut(word, ".")
	a = &authorizationv1.ResourceAttributes{Resource: name, Group: group, Subresource: sub}
	groups, lists, err := client.ServerGroupsAndResources()
	if err != nil && len(lists) == 0 { // else some groups are not available
		return nil, false, false, err
	}
	for _, l := range byPriority(groups, lists) {
		of, version := groupOf(l.GroupVersion)
		for i := range l.APIResources {
			r := &l.APIResources[i]
			if strings.Contains(r.Name, "/") || !means(r, name) ||
				group != "" && group != of && group != version+"."+of {
				continue
			}
			a.Resource, a.Group = r.Name, of
			return a, r.Namespaced, true, nil
		}
	}
	return a, true, false, nil
}

// byPriority sorts lists of resources by the server's priority of their groups and versions, the core group first: pods
// are not those of metrics.k8s.io. The discovery client returns the lists in a random order.
func byPriority(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	rank := map[string]int{} // 0 for the core group
	for i, g := range groups {
		for n, v := range g.Versions {
			if g.Name != "" {
				rank[v.GroupVersion] = (i+1)<<10 + n
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(lists), func(a, b *metav1.APIResourceList) int {
		return cmp.Compare(rank[a.GroupVersion], rank[b.GroupVersion])
	})
}

// ResourceOf returns the resource of a kind in a version.
func ResourceOf(client discovery.DiscoveryInterface, kind schema.GroupVersionKind) (*Resource, error) {
	version := kind.GroupVersion()
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", version, err)
	}
	for _, r := range list.APIResources {
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return &Resource{version.WithResource(r.Name), r.Kind, r.Namespaced, r.Verbs}, nil
		}
	}
	return nil, fmt.Errorf("the server has no kind %s in %s", kind.Kind, version)
}

func groupOf(groupVersion string) (group, version string) {
	group, version, ok := strings.Cut(groupVersion, "/")
	if !ok {
		return "", group
	}
	return group, version
}

func means(r *metav1.APIResource, word string) bool {
	word = strings.ToLower(word)
	if r.Name == word || r.SingularName == word || strings.ToLower(r.Kind) == word {
		return true
	}
	for _, short := range r.ShortNames {
		if short == word {
			return true
		}
	}
	return false
}
