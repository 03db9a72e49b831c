package storage

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// claimResizes checks that growing claims are bound, and that their class allows expansion.
type claimResizes struct{ view *watchcache.View }

// ClaimResize lets claims grow only if they are bound and their class allows expansion.
func ClaimResize(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Plural: "persistentvolumeclaims", Operations: plugin.Updates, Validate: claimResizes{c.View}.check,
	}}
}

func (c claimResizes) check(ctx context.Context, a *admit.Attributes) error {
	was, now := storageOf(a.Old), storageOf(a.Object)
	if quantity.Cmp(now, was) <= 0 {
		return nil
	}
	if catalog.Text(a.Old, "status", "phase") != string(corev1.ClaimBound) {
		//lint:ignore ST1005 kube's text
		return admit.Forbidden(a, errors.New("Only bound persistent volume claims can be expanded"))
	}
	if !c.allowed(ctx, classOf(a.Object), classOf(a.Old)) {
		return admit.Forbidden(a,
			errors.New(
				"only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
	}
	return nil
}

func (c claimResizes) allowed(ctx context.Context, name, old string) bool {
	if name == "" || name != old {
		return false
	}
	class, err := plugin.Lookup[storagev1.StorageClass](ctx, c.view, storageClasses, "", name)
	return err == nil && class != nil && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion
}

// storageOf returns the storage request of a claim, 0 if there is none.
func storageOf(claim object) resource.Quantity {
	return pod.Amounts(catalog.At(claim, "spec"), "requests")["storage"]
}

func classOf(claim object) string {
	if name, ok := catalog.At(claim, "metadata", "annotations")[corev1.BetaStorageClassAnnotation].(string); ok {
		return name
	}
	return catalog.Text(claim, "spec", "storageClassName")
}
