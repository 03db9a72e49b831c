package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// versions returns the document of /api. Here and in resourceList of the core group, Kubernetes omits apiVersion for
// clients of release 1.1.
func (h *Handler) versions(snap *catalog.Snapshot) func() object {
	return func() object {
		out := &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
				{ClientCIDR: "0.0.0.0/0", ServerAddress: h.options.ServerAddress},
			},
		}
		for _, g := range core(snap) {
			for _, v := range g.Versions {
				out.Versions = append(out.Versions, v.Name)
			}
		}
		return out
	}
}

// groupList is the document of /apis.
func groupList(groups []*catalog.Group) func() object {
	return func() object {
		out := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range groups {
			out.Groups = append(out.Groups, apiGroup(g))
		}
		return out
	}
}

// apiGroup describes g, which serves at least one version.
func apiGroup(g *catalog.Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		out.Versions = append(out.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: groupVersion(g, v), Version: v.Name})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func groupVersion(g *catalog.Group, v *catalog.GroupVersion) string {
	return metav1.GroupVersion{Group: g.Name, Version: v.Name}.String()
}

// resourceList is the document of /api/v1 and /apis/<group>/<version>: each resource, then its subresources.
func resourceList(g *catalog.Group, gv *catalog.GroupVersion) *metav1.APIResourceList {
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: groupVersion(g, gv),
		APIResources: []metav1.APIResource{},
	}
	if g.Name == "" {
		out.APIVersion = ""
	}
	for _, r := range gv.Resources {
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name:               r.Plural,
			SingularName:       r.Singular,
			Namespaced:         r.Namespaced,
			Kind:               r.Kind,
			Verbs:              verbs(r),
			ShortNames:         r.ShortNames,
			Categories:         r.Categories,
			StorageVersionHash: storageVersionHash(r),
		})
		for _, s := range subresources(r, r.Version(gv.Name)) {
			out.APIResources = append(out.APIResources, metav1.APIResource{
				Name:       r.Plural + "/" + s.name,
				Namespaced: r.Namespaced,
				Group:      s.kind.Group,
				Version:    s.kind.Version,
				Kind:       s.kind.Kind,
				Verbs:      s.verbs,
			})
		}
	}
	return out
}

// aggregatedGroup describes g with all that its versions serve.
func aggregatedGroup(g *catalog.Group) apidiscoveryv2.APIGroupDiscovery {
	out := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	for _, gv := range g.Versions {
		version := apidiscoveryv2.APIVersionDiscovery{
			Version: gv.Name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		}
		if gv.Remote != nil {
			version.Resources = gv.Remote.Resources
			if gv.Remote.Stale {
				version.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			}
			out.Versions = append(out.Versions, version)
			continue
		}
		for _, r := range gv.Resources {
			own := metav1.GroupVersionKind{Kind: r.Kind}
			if r.Custom() { // Kubernetes omits group and version of built-in kinds
				own.Group, own.Version = g.Name, gv.Name
			}
			resource := apidiscoveryv2.APIResourceDiscovery{
				Resource:         r.Plural,
				ResponseKind:     &own,
				Scope:            apidiscoveryv2.ScopeCluster,
				SingularResource: r.Singular,
				Verbs:            verbs(r),
				ShortNames:       r.ShortNames,
				Categories:       r.Categories,
			}
			if r.Namespaced {
				resource.Scope = apidiscoveryv2.ScopeNamespace
			}
			for _, s := range subresources(r, r.Version(gv.Name)) {
				kind := s.kind
				if kind.Group == "" && kind.Version == "" {
					kind.Group, kind.Version = own.Group, own.Version
				}
				resource.Subresources = append(resource.Subresources, apidiscoveryv2.APISubresourceDiscovery{
					Subresource: s.name, ResponseKind: &kind, Verbs: s.verbs,
				})
			}
			version.Resources = append(version.Resources, resource)
		}
		out.Versions = append(out.Versions, version)
	}
	return out
}

// verbs returns the verbs of r in Kubernetes' order, which differs between built-in and custom kinds.
func verbs(r *catalog.Resource) []string {
	switch {
	case r.Custom() && r.Terminating:
		return []string{"delete", "deletecollection", "get", "list", "watch"}
	case r.Custom() && r.Verbs == nil:
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	case r.Verbs == nil:
		return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
	return slices.Sorted(slices.Values(r.Verbs))
}

// subresource is one path below an object.
type subresource struct {
	name string
	// kind is the kind of the response. Only its name is set if group and version are the resource's.
	kind  metav1.GroupVersionKind
	verbs []string
}

// subresources returns the subresources of r in version v: status and scale in the order of Kubernetes' custom kinds;
// sorted for built-in ones.
func subresources(r *catalog.Resource, v *catalog.Version) []subresource {
	change := []string{"get", "patch", "update"}
	var out []subresource
	if v.Status {
		out = append(out, subresource{name: "status", kind: metav1.GroupVersionKind{Kind: r.Kind}, verbs: change})
	}
	if v.Scale != nil {
		scale := autoscalingv1.SchemeGroupVersion
		out = append(out,
			subresource{
				name: "scale", kind: metav1.GroupVersionKind{Group: scale.Group, Version: scale.Version, Kind: "Scale"},
				verbs: change,
			})
	}
	for _, s := range r.Subresources {
		out = append(out, subresource{name: s.Name, kind: s.Kind, verbs: s.Verbs})
	}
	if !r.Custom() {
		slices.SortFunc(out, func(a, b subresource) int {
			if a.name < b.name {
				return -1
			}
			return 1
		})
	}
	return out
}

// storageVersionHash identifies the storage version without naming it: the first eight bytes of a SHA-256. Clients
// compare two hashes to detect that stored objects need migration. As in Kubernetes there is none for an unserved
// storage version of a custom kind, and none for virtual resources.
func storageVersionHash(r *catalog.Resource) string {
	if r.Storage == nil || r.Custom() && !r.Storage.Served || r.Virtual {
		return ""
	}
	name := r.Storage.Name
	if r.Form != nil && r.Form.Version != "" {
		name = r.Form.Version
	}
	group := r.Group
	if r.Secondary { // its objects belong to another group, named by their prefix
		group = strings.TrimSuffix(strings.TrimSuffix(r.Prefix, r.Plural), "/")
	}
	sum := sha256.Sum256([]byte(group + "/" + name + "/" + r.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
