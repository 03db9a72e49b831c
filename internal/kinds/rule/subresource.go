package rule

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// ViewVerbs are the verbs of a subresource that shows a part of the object.
var ViewVerbs = []string{"get", "patch", "update"}

// ObjectSubresource is a subresource with the object itself as body.
func ObjectSubresource(k, name string, verbs ...string) catalog.Subresource {
	return catalog.Subresource{Name: name, Kind: metav1.GroupVersionKind{Kind: k}, Verbs: verbs, Object: true}
}

// OtherSubresource is a subresource with another kind as body; group and version are "" if they are the object's.
func OtherSubresource(name, group, version, k string, verbs ...string) catalog.Subresource {
	return catalog.Subresource{
		Name: name, Kind: metav1.GroupVersionKind{Group: group, Version: version, Kind: k}, Verbs: verbs,
	}
}

// Connection is a subresource that connects the client with a process, for as long as the client wants. k is the kind
// of its options.
func Connection(name, k string, verbs ...string) catalog.Subresource {
	sub := OtherSubresource(name, "", "", k, verbs...)
	sub.LongRunning = true
	return sub
}

// VirtualSubresource is a subresource that answers a POST of k's kind and stores nothing.
func VirtualSubresource(name string, k Kind) catalog.Subresource {
	r := k.Resource()
	r.Namespaced = true
	return catalog.Subresource{
		Name: name, Kind: metav1.GroupVersionKind{Group: r.Group, Version: r.Storage.Name, Kind: r.Kind},
		Verbs: []string{"create"}, Virtual: r,
	}
}
