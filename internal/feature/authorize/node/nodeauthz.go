// Package node implements the authorization mode Node, for the requests of kubelets.
//
// It is one of the modes of authz.Union. A kubelet may use the objects that the pods on its node need, and the objects
// of the node itself. Kubernetes maintains a graph of these relations. This package evaluates each request on the view
// instead: an index finds the pods of a node, and the needs of a pod are computed once for each version of it
// (Entry.Encoded). So it has no state while no kubelet asks, and its answers are as current as the view. The admission
// plugin NodeRestriction checks the content of created objects. Source of rules and texts:
// plugin/pkg/auth/authorizer/node of Kubernetes 1.36; test/oracle-builtins compares both. Authorizer is safe for
// concurrent use.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Authorizer decides about the requests of kubelets, and has no opinion about others.
type Authorizer struct {
	View *watchcache.View
	// PodCertificates is set if PodCertificateRequests are served: kubelets create them.
	PodCertificates bool
	// TrustBundles is set if kubelets read ClusterTrustBundles, for volumes of pods.
	TrustBundles bool
}

var _ authz.Mode = Authorizer{}

// NodeName returns the node name of a kubelet's user: a member of system:nodes with the name system:node:NAME. The name
// may be empty.
func NodeName(u user.Info) (name string, isNode bool) {
	name, isNode = strings.CutPrefix(u.GetName(), "system:node:")
	if !isNode || !slices.Contains(u.GetGroups(), user.NodesGroup) {
		return "", false
	}
	return name, true
}

// Rules implements authz.Ruler. It is incomplete for kubelets, since their permissions depend on pods.
func (Authorizer) Rules(_ context.Context, u user.Info, _ string) (authz.Rules, error) {
	if _, isNode := NodeName(u); isNode {
		return authz.Rules{Incomplete: true}, errors.New("node authorizer does not support user rule resolution")
	}
	return authz.Rules{}, nil
}

// Authorize implements authz.Authorizer.
func (a Authorizer) Authorize(_ context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	node, isNode := NodeName(u)
	if !isNode {
		return authz.Decision{}, nil
	}
	if node == "" {
		return no("unknown node for user %q", u.GetName()), nil
	}
	if !info.IsResource {
		return authz.Decision{}, nil
	}
	q := kubeletRequest{Info: info, node: node, view: a.View, podCertificates: a.PodCertificates}
	if rule := restricted[info.Group+"/"+info.Resource]; rule != nil {
		return rule(q), nil
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	if slices.Contains(unrestricted[info.Group+"/"+resource], info.Verb) ||
		a.TrustBundles && isBundle(info) && !info.Mutating() {
		return yes, nil
	}
	return authz.Decision{}, nil
}

func isBundle(info *request.Info) bool {
	return info.Group == "certificates.k8s.io" && info.Resource == "clustertrustbundles" && info.Subresource == ""
}

// kubeletRequest is the request of a node's kubelet.
type kubeletRequest struct {
	*request.Info
	node string
	view *watchcache.View

	podCertificates bool
}

var yes = authz.Decision{Verdict: authz.Allow}

func no(format string, args ...any) authz.Decision {
	return authz.Decision{Reason: fmt.Sprintf(format, args...)}
}

// restricted are the resources of which a kubelet may use only some objects, by "group/resource".
var restricted = map[string]func(kubeletRequest) authz.Decision{
	"/secrets":    kubeletRequest.readNamespaced,
	"/configmaps": kubeletRequest.readNamespaced,
	"/persistentvolumeclaims": func(q kubeletRequest) authz.Decision {
		if q.Subresource == "status" {
			if q.Verb != "update" && q.Verb != "patch" {
				return no("can only get/update/patch this type")
			}
			return q.related()
		}
		return q.get()
	},
	"/persistentvolumes":                         kubeletRequest.get,
	"resource.k8s.io/resourceclaims":             kubeletRequest.get,
	"storage.k8s.io/volumeattachments":           kubeletRequest.get,
	"/serviceaccounts":                           kubeletRequest.serviceAccount,
	"coordination.k8s.io/leases":                 kubeletRequest.lease,
	"storage.k8s.io/csinodes":                    kubeletRequest.csiNode,
	"resource.k8s.io/resourceslices":             kubeletRequest.slice,
	"/nodes":                                     kubeletRequest.nodeObject,
	"/pods":                                      kubeletRequest.pod,
	"certificates.k8s.io/podcertificaterequests": kubeletRequest.podCertificate,
}

// unrestricted are the verbs of resources that every kubelet may use, by "group/resource/subresource".
var unrestricted = map[string][]string{
	"authentication.k8s.io/tokenreviews":             {"create"},
	"authorization.k8s.io/subjectaccessreviews":      {"create"},
	"authorization.k8s.io/localsubjectaccessreviews": {"create"},
	"/services":            {"get", "list", "watch"},
	"/events":              {"create", "update", "patch"},
	"events.k8s.io/events": {"create", "update", "patch"},
	"/endpoints":           {"get"},
	"certificates.k8s.io/certificatesigningrequests": {"create", "get", "list", "watch"},
	"storage.k8s.io/csidrivers":                      {"get", "watch", "list"},
	"node.k8s.io/runtimeclasses":                     {"get", "list", "watch"},
}

// get allows to read a single object that the node needs.
func (q kubeletRequest) get() authz.Decision {
	if q.Verb != "get" {
		return no("can only get individual resources of this type")
	}
	if q.Subresource != "" {
		return no("cannot get subresource")
	}
	return q.related()
}

// readNamespaced allows to get and watch a single object that the node needs.
func (q kubeletRequest) readNamespaced() authz.Decision {
	switch {
	case q.Verb != "get" && q.Verb != "list" && q.Verb != "watch":
		return no("can only read resources of this type")
	case q.Subresource != "":
		return no("cannot read subresource")
	case q.Namespace == "":
		return no("can only read namespaced object of this type")
	}
	return q.related()
}

func (q kubeletRequest) related() authz.Decision {
	if q.Name == "" {
		return no("No Object name found")
	}
	if q.isNeeded() {
		return yes
	}
	return no("no relationship found between node '%s' and this object", q.node)
}

func (q kubeletRequest) serviceAccount() authz.Decision {
	switch {
	case q.Verb == "get" && q.Subresource == "":
		return q.readNamespaced()
	case q.Verb != "create" || q.Name == "":
		return no("can only create tokens for individual service accounts")
	case q.Subresource != "token":
		return no("can only create token subresource of serviceaccount")
	}
	return q.related()
}

// owns reports whether a verb is one that a kubelet uses on an object of its own node.
func (q kubeletRequest) owns() bool {
	return slices.Contains([]string{"get", "create", "update", "patch", "delete"}, q.Verb)
}

func (q kubeletRequest) lease() authz.Decision {
	switch {
	case !q.owns():
		return no("can only get, create, update, patch, or delete a node lease")
	case q.Namespace != "kube-node-lease":
		return no(`can only access leases in the "kube-node-lease" system namespace`)
	case q.Verb != "create" && q.Name != q.node: // NodeRestriction checks the name of a new one
		return no("can only access node lease with the same name as the requesting node")
	}
	return yes
}

func (q kubeletRequest) csiNode() authz.Decision {
	switch {
	case q.Subresource == "status":
		return no("CSINode status access requires CSIVolumeHealth feature")
	case q.Subresource != "":
		return no("cannot authorize CSINode subresources")
	case !q.owns():
		return no("can only get, create, update, patch, or delete a CSINode")
	case q.Verb != "create" && q.Name != q.node: // NodeRestriction checks the name of a new one
		return no("can only access CSINode with the same name as the requesting node")
	}
	return yes
}

func (q kubeletRequest) slice() authz.Decision {
	if q.Subresource != "" {
		return no("cannot authorize ResourceSlice subresources")
	}
	switch q.Verb {
	case "create": // NodeRestriction checks its node
		return yes
	case "get", "update", "patch", "delete":
		return q.related()
	case "watch", "list", "deletecollection":
		if q.selectsNode() {
			return yes
		}
		return no("can only list/watch/deletecollection resourceslices with nodeName field selector")
	}
	return no("only the following verbs are allowed for a ResourceSlice: " +
		"get, watch, list, create, update, patch, delete, deletecollection")
}

// selectsNode reports whether a field selector restricts the request to spec.nodeName of this node.
func (q kubeletRequest) selectsNode() bool {
	selector, err := fields.ParseSelector(q.FieldSelector)
	return err == nil && slices.ContainsFunc(selector.Requirements(), func(r fields.Requirement) bool {
		return r.Field == "spec.nodeName" && r.Operator == selection.Equals && r.Value == q.node
	})
}

func (q kubeletRequest) podCertificate() authz.Decision {
	switch {
	case !q.podCertificates:
		return authz.Decision{}
	case q.Subresource != "":
		return no("nodes may not access the status subresource of PodCertificateRequests")
	}
	switch q.Verb {
	case "create": // NodeRestriction checks its pod
		return yes
	case "get":
		return q.related()
	case "list", "watch":
		if q.selectsNode() {
			return yes
		}
		return no("can only list/watch podcertificaterequests with nodeName field selector")
	}
	return no("nodes may not %s podcertificaterequests", q.Verb)
}

func (q kubeletRequest) nodeObject() authz.Decision {
	switch q.Subresource + " " + q.Verb {
	case " create", " update", " patch", "status update", "status patch": // NodeRestriction checks its node
		return yes
	case " get", " list", " watch":
		switch q.Name {
		case q.node:
			return yes
		case "":
			return no("node '%s' cannot read all nodes, only its own Node object", q.node)
		}
		return no("node '%s' cannot read '%s', only its own Node object", q.node, q.Name)
	}
	return authz.Decision{}
}

func (q kubeletRequest) pod() authz.Decision {
	switch q.Subresource + " " + q.Verb {
	case " get":
		return q.related()
	case " list", " watch":
		switch {
		case q.selectsNode():
			return yes
		case q.Name != "":
			return q.related()
		}
		return no("can only list/watch pods with spec.nodeName field selector")
	case " create", " delete", "status update", "status patch", "eviction create":
		return yes // NodeRestriction checks its node
	}
	return authz.Decision{}
}
