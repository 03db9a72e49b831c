package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/node"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// nodeLimits restrict kubelets to their own node and its objects, as far as the decision depends on the written object
// and the authorization mode Node cannot make it. Requests of other users pass.
type nodeLimits struct {
	view  *watchcache.View
	authz authz.Authorizer
	// anyAudience also allows tokens for audiences that no volume requests.
	anyAudience bool
}

// NodeRestriction keeps kubelets to their own node.
func NodeRestriction(c plugin.Config) []plugin.Rule {
	n := nodeLimits{c.View, c.Authz, c.AnyAudience}
	var out []plugin.Rule
	for _, of := range []struct {
		group, plural string
		check         func(ctx context.Context, node string, a *admit.Attributes) error
	}{
		{"", "pods", n.pod},
		{"", "nodes", n.node},
		{"", "persistentvolumeclaims", n.claim},
		{"", "serviceaccounts", n.token},
		{"coordination.k8s.io", "leases", n.lease},
		{"storage.k8s.io", "csinodes", n.csiNode},
		{"resource.k8s.io", "resourceslices", n.slice},
		{certificatesv1.GroupName, "certificatesigningrequests", n.signingRequest},
		{certificatesv1.GroupName, "podcertificaterequests", n.podCertificate},
	} {
		out = append(out, plugin.Rule{
			Group: of.group, Plural: of.plural, Subresource: plugin.AnySubresource,
			Operations: []admit.Operation{admit.Create, admit.Update, admit.Delete},
			Mutate: func(ctx context.Context, a *admit.Attributes) error {
				node, isNode := node.NodeName(a.User)
				switch {
				case !isNode:
					return nil
				case node == "":
					return refuse(a, "could not determine node from user %q", a.User.GetName())
				}
				return of.check(ctx, node, a)
			},
		})
	}
	return out
}

func refuse(a *admit.Attributes, format string, args ...any) error {
	return admit.Forbidden(a, fmt.Errorf(format, args...))
}

// parts decodes only the named parts of an object.
func parts[T any](obj object, names ...string) (*T, error) {
	some := object{}
	for _, name := range names {
		if v, ok := obj[name]; ok {
			some[name] = v
		}
	}
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(some, out)
}

// node lets a kubelet write its own Node, except the fields that attract pods or extend its permissions.
func (n nodeLimits) node(_ context.Context, name string, a *admit.Attributes) error {
	if a.Name != name {
		return refuse(a, "node %q is not allowed to modify node %q", name, a.Name)
	}
	if a.Operation == admit.Delete {
		return nil
	}
	now, err := parts[corev1.Node](a.Object, "metadata", "spec")
	if err != nil {
		return err
	}
	if a.Operation == admit.Create {
		//lint:ignore SA1019 clients may still send it
		if now.Spec.ConfigSource != nil {
			return refuse(a, "node %q is not allowed to create pods with a non-nil configSource", name)
		}
		if labels := forbiddenLabels(now.Labels, nil); len(labels) > 0 {
			return refuse(a, "node %q is not allowed to set the following labels: %s", name, strings.Join(labels, ", "))
		}
		return nil
	}
	old, err := parts[corev1.Node](a.Old, "metadata", "spec")
	if err != nil {
		return err
	}
	same := quantity.Semantic.DeepEqual
	switch {
	//lint:ignore SA1019 clients may still send it
	case now.Spec.ConfigSource != nil && !same(now.Spec.ConfigSource, old.Spec.ConfigSource):
		return refuse(a, "node %q is not allowed to update configSource to a new non-nil configSource", name)
	case !same(now.Spec.Taints, old.Spec.Taints):
		return refuse(a, "node %q is not allowed to modify taints", name)
	case !same(now.OwnerReferences, old.OwnerReferences):
		return refuse(a, "node %q is not allowed to modify ownerReferences", name)
	}
	if labels := forbiddenLabels(now.Labels, old.Labels); len(labels) > 0 {
		return refuse(a, "is not allowed to modify labels: %s", strings.Join(labels, ", "))
	}
	return nil
}

// kubeletLabels are the Kubernetes labels that a kubelet may set on its Node, in addition to labels below
// kubelet.kubernetes.io and node.kubernetes.io.
var kubeletLabels = []string{
	"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os",
	"beta.kubernetes.io/arch",
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type",
}

// forbiddenLabels returns the sorted labels that differ and that no kubelet may change.
func forbiddenLabels(now, old map[string]string) (out []string) {
	for key, value := range now {
		if was, ok := old[key]; (!ok || was != value) && isForbiddenLabel(key) {
			out = append(out, key)
		}
	}
	for key := range old {
		if _, ok := now[key]; !ok && isForbiddenLabel(key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

func isForbiddenLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	below := func(top string) bool { return domain == top || strings.HasSuffix(domain, "."+top) }
	if below("node-restriction.kubernetes.io") {
		return true
	}
	return (below("kubernetes.io") || below("k8s.io")) && !slices.Contains(kubeletLabels, key) &&
		!below("kubelet.kubernetes.io") && !below("node.kubernetes.io")
}

// nameOf returns the name of the object of a write, or "" while it is still to be generated.
func nameOf(a *admit.Attributes) string {
	if a.Operation == admit.Create {
		return catalog.Text(a.Object, "metadata", "name")
	}
	return a.Name
}

func (n nodeLimits) lease(_ context.Context, node string, a *admit.Attributes) error {
	switch {
	case a.Namespace != corev1.NamespaceNodeLease:
		return refuse(a, "can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case nameOf(a) != node:
		return refuse(a, "can only access node lease with the same name as the requesting node")
	}
	return nil
}

func (n nodeLimits) csiNode(_ context.Context, node string, a *admit.Attributes) error {
	if nameOf(a) != node {
		return refuse(a, "can only access CSINode with the same name as the requesting node")
	}
	if a.Subresource == "status" { // the server does not have the feature
		return refuse(a, "CSIVolumeHealth feature gate is disabled")
	}
	return nil
}

// slice checks the node of a slice. Updates are left to authorization.
func (n nodeLimits) slice(_ context.Context, node string, a *admit.Attributes) error {
	switch {
	case a.Operation == admit.Create && catalog.Text(a.Object, "spec", "nodeName") != node:
		return refuse(a, "can only create ResourceSlice with the same NodeName as the requesting node")
	case a.Operation == admit.Delete && catalog.Text(a.Old, "spec", "nodeName") != node:
		return refuse(a, "can only delete ResourceSlice with the same NodeName as the requesting node")
	}
	return nil
}

// signingRequest keeps a kubelet from asking for the certificate of another node.
func (n nodeLimits) signingRequest(_ context.Context, node string, a *admit.Attributes) error {
	if a.Operation != admit.Create {
		return nil
	}
	switch catalog.Text(a.Object, "spec", "signerName") {
	case certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName:
	default:
		return nil
	}
	req, err := certificates.RequestOf(a.Object)
	if err != nil {
		return refuse(a, "unable to parse csr: %w", err)
	}
	if req.Subject.CommonName != "system:node:"+node {
		return refuse(a, "can only create a node CSR with CN=system:node:%s", node)
	}
	return nil
}
