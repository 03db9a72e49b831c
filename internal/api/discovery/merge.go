package discovery

import (
	"maps"
	"reflect"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	utilsort "k8s.io/apimachinery/pkg/util/sort"
)

// mergeServers merges the groups of this server (local) and the others, and reports whether the result differs from
// local, also in its order. It keeps each server's order as far as the others' orders allow. Rules: peer-aggregated
// discovery of k8s.io/apiserver 0.36, pkg/endpoints/discovery/aggregated.
func mergeServers(local []apidiscoveryv2.APIGroupDiscovery, o *Others) ([]apidiscoveryv2.APIGroupDiscovery, bool) {
	lists := map[string][]apidiscoveryv2.APIGroupDiscovery{o.Own: local}
	maps.Copy(lists, o.Servers)
	byName := map[string]apidiscoveryv2.APIGroupDiscovery{}
	own := names(local, groupName)
	var orders [][]string
	changed, sameNames := false, true
	for _, server := range slices.Sorted(maps.Keys(lists)) {
		for _, g := range lists[server] {
			if have, ok := byName[g.Name]; ok {
				more := false
				byName[g.Name], more = mergeGroup(have, g)
				changed = changed || more
			} else {
				byName[g.Name] = g
			}
		}
		order := names(lists[server], groupName)
		orders = append(orders, order)
		sameNames = sameNames && slices.Equal(own, order)
	}
	if !changed && sameNames {
		return local, false
	}
	order := own
	if !sameNames {
		order = utilsort.MergePreservingRelativeOrder(orders)
	}
	return pick(byName, order), true
}

func groupName(g apidiscoveryv2.APIGroupDiscovery) string       { return g.Name }
func versionName(v apidiscoveryv2.APIVersionDiscovery) string   { return v.Version }
func resourceName(r apidiscoveryv2.APIResourceDiscovery) string { return r.Resource }

func mergeGroup(a, b apidiscoveryv2.APIGroupDiscovery) (apidiscoveryv2.APIGroupDiscovery, bool) {
	versions, changed := mergeLists(a.Versions, b.Versions, versionName, mergeVersion)
	a.Versions = versions
	return a, changed
}

func mergeVersion(a, b apidiscoveryv2.APIVersionDiscovery) (apidiscoveryv2.APIVersionDiscovery, bool) {
	resources, changed := mergeLists(a.Resources, b.Resources, resourceName, mergeResource)
	a.Resources = resources
	return a, changed
}

// mergeResource returns a resource with the verbs and subresources of both, sorted.
func mergeResource(a, b apidiscoveryv2.APIResourceDiscovery) (apidiscoveryv2.APIResourceDiscovery, bool) {
	if reflect.DeepEqual(a, b) {
		return a, false
	}
	a.Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Verbs, b.Verbs))))
	subresources := map[string]apidiscoveryv2.APISubresourceDiscovery{}
	for _, s := range slices.Concat(a.Subresources, b.Subresources) {
		subresources[s.Subresource] = s
	}
	a.Subresources = nil
	for _, name := range slices.Sorted(maps.Keys(subresources)) {
		a.Subresources = append(a.Subresources, subresources[name])
	}
	return a, true
}

// mergeLists returns the elements of a and b, and reports whether the result differs from a; both merges two with one
// name.
func mergeLists[T any](a, b []T, name func(T) string, both func(a, b T) (T, bool)) ([]T, bool) {
	byName := make(map[string]T, len(a))
	for _, one := range a {
		byName[name(one)] = one
	}
	changed := false
	for _, one := range b {
		if have, ok := byName[name(one)]; ok {
			more := false
			byName[name(one)], more = both(have, one)
			changed = changed || more
		} else {
			byName[name(one)] = one
		}
	}
	order, theirs := names(a, name), names(b, name)
	if same := slices.Equal(order, theirs); !same {
		order = utilsort.MergePreservingRelativeOrder([][]string{order, theirs})
	} else if !changed {
		return a, false
	}
	return pick(byName, order), true
}

func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = name(one)
	}
	return out
}

// pick returns the elements of byName in the given order, each once.
func pick[T any](byName map[string]T, order []string) []T {
	out := make([]T, 0, len(byName))
	left := maps.Clone(byName)
	for _, name := range order {
		if one, ok := left[name]; ok {
			out = append(out, one)
			delete(left, name)
		}
	}
	return out
}
