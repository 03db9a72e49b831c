// Package kinds lists the kinds that ship with the server: those of k8s.io/api that Kubernetes 1.36 serves by default,
// and CustomResourceDefinition itself.
//
// Nothing on the path of a request knows a built-in kind by name. Resources gives each as a catalog.Resource, the same
// thing that a CustomResourceDefinition becomes, and what a schema cannot say stands in its catalog.Strategy. The kinds
// are in packages by API group; docs/design/kinds.md shows where to find what about a kind.
//
// Strategies are pure and safe for concurrent use. Error texts, field paths and their order are kube-apiserver's
// (pkg/apis/*/validation and pkg/registry of Kubernetes 1.36).
package kinds

import (
	"slices"
	"time"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/admission"
	"github.com/bowsprit/bowsprit/internal/kinds/apiextensions"
	"github.com/bowsprit/bowsprit/internal/kinds/apiserverinternal"
	"github.com/bowsprit/bowsprit/internal/kinds/apps"
	"github.com/bowsprit/bowsprit/internal/kinds/auth"
	"github.com/bowsprit/bowsprit/internal/kinds/autoscaling"
	"github.com/bowsprit/bowsprit/internal/kinds/batch"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/kinds/coordination"
	"github.com/bowsprit/bowsprit/internal/kinds/core"
	"github.com/bowsprit/bowsprit/internal/kinds/flowcontrol"
	"github.com/bowsprit/bowsprit/internal/kinds/network"
	"github.com/bowsprit/bowsprit/internal/kinds/node"
	"github.com/bowsprit/bowsprit/internal/kinds/policy"
	"github.com/bowsprit/bowsprit/internal/kinds/rbac"
	"github.com/bowsprit/bowsprit/internal/kinds/resource"
	"github.com/bowsprit/bowsprit/internal/kinds/scheduling"
	"github.com/bowsprit/bowsprit/internal/kinds/storage"
	"github.com/bowsprit/bowsprit/internal/kinds/storagemigration"
)

// Resources returns the built-in kinds. Each call makes new values, which a catalog may own.
func Resources() []*catalog.Resource {
	return slices.Concat(
		core.Kinds(),
		apps.Kinds(),
		batch.Kinds(),
		autoscaling.Kinds(),
		policy.Kinds(),
		network.Kinds(),
		storage.Kinds(),
		node.Kinds(),
		scheduling.Kinds(),
		resource.Kinds(),
		rbac.Kinds(),
		certificates.Kinds(),
		auth.Kinds(),
		apiextensions.Kinds(),
		admission.Kinds(),
		coordination.Kinds(),
		flowcontrol.Kinds(),
		storagemigration.Kinds(),
		apiserverinternal.Kinds(),
	)
}

// Unserved returns Resources for a server that serves none of them, and looks at objects of some.
func Unserved() []*catalog.Resource {
	all := Resources()
	for _, r := range all {
		r.Served = false
	}
	return all
}

// Minimal returns the kinds that no server is without: namespaces, and definitions of custom resources.
func Minimal() []*catalog.Resource {
	return slices.Concat(core.Namespaces(), apiextensions.Kinds())
}

// KeepEvents has events among kinds live for ttl after their last write; 0 is for ever.
func KeepEvents(kinds []*catalog.Resource, ttl time.Duration) {
	for _, r := range kinds {
		if r.Strategy != nil && r.Strategy.TTL > 0 {
			r.Strategy.TTL = ttl
		}
	}
}

// CoordinateLeases has the Leases among kinds keep what is about coordinated leader election, as with Kubernetes'
// feature gate CoordinatedLeaderElection.
func CoordinateLeases(kinds []*catalog.Resource) {
	for _, r := range kinds {
		if r.Group == "coordination.k8s.io" && r.Kind == "Lease" {
			r.Strategy.PrepareCreate, r.Strategy.PrepareUpdate = nil, nil
		}
	}
}
