package storageversion

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// barrier rejects writes of resources with a pending entry: otherwise an object might be stored in a version that no
// other server knows of. Exempt are StorageVersions and the Leases of servers, which are written first, resources that
// are not stored, and resources of definitions, which have no entry at the start.
func (r *records) barrier(_ *http.Request, info *request.Info) front.Handler {
	if r.complete.Load() || !info.IsResource || !info.Mutating() {
		return nil
	}
	gr := catalog.GroupResource{Group: info.Group, Resource: info.Resource}
	if gr == resource || gr == leases && info.Namespace == metav1.NamespaceSystem {
		return nil
	}
	r.mu.Lock()
	why, pending := r.mu.pending[gr]
	r.mu.Unlock()
	if !pending {
		return nil
	}
	return func(w http.ResponseWriter, req *http.Request, _ *request.Info, _ user.Info) {
		codec.WriteError(w, req, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"wait for storage version registration to complete for resource: %v, last seen error: %v",
			schema.GroupResource{Group: gr.Group, Resource: gr.Resource}, why)))
	}
}
