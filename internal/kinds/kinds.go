// Package kinds lists the built-in kinds: the kinds of k8s.io/api that Kubernetes 1.37 serves by default, and
// CustomResourceDefinition itself.
//
// The path of a request contains no code for single built-in kinds. Resources returns each kind as a catalog.Resource,
// as for a CustomResourceDefinition; its catalog.Strategy holds the rules that a schema cannot express. The kinds are
// in packages by API group; docs/design/kinds.md is a guide to the files of a kind.
//
// Strategies are pure and safe for concurrent use. Error texts, field paths and their order are kube-apiserver's
// (pkg/apis/*/validation and pkg/registry of Kubernetes 1.37).
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

// Resources returns the built-in kinds. Each call creates new values, which a catalog may own.
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

// Unserved returns Resources for a server that serves none of them, but reads objects of some.
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

// KeepEvents sets the lifetime of events among kinds after their last write; 0 means forever.
func KeepEvents(kinds []*catalog.Resource, ttl time.Duration) {
	for _, r := range kinds {
		if r.Strategy != nil && r.Strategy.TTL > 0 {
			r.Strategy.TTL = ttl
		}
	}
}

// CoordinateLeases makes Leases keep the fields for coordinated leader election, as with Kubernetes' feature gate
// CoordinatedLeaderElection.
func CoordinateLeases(kinds []*catalog.Resource) {
	for _, r := range kinds {
		if r.Group == "coordination.k8s.io" && r.Kind == "Lease" {
			r.Strategy.PrepareCreate, r.Strategy.PrepareUpdate = nil, nil
		}
	}
}
