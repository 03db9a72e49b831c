package plugin

import (
	"context"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// storageProtection keeps claims, volumes and classes of attributes while they are in use: controllers take these
// finalizers away.
func storageProtection(Config) []rule {
	return []rule{
		{plural: "persistentvolumeclaims", operations: creates, mutate: finalize("kubernetes.io/pvc-protection")},
		{plural: "persistentvolumes", operations: creates, mutate: finalize("kubernetes.io/pv-protection")},
		{
			group: "storage.k8s.io", plural: "volumeattributesclasses", operations: creates,
			mutate: finalize("kubernetes.io/vac-protection"),
		},
	}
}

// finalize adds a finalizer to objects that lack it.
func finalize(name string) step {
	return func(_ context.Context, a *admit.Attributes) error {
		if list, _ := catalog.At(a.Object, "metadata")["finalizers"].([]any); !slices.Contains(list, any(name)) {
			a.Edit("metadata")["finalizers"] = append(slices.Clip(list), name)
		}
		return nil
	}
}
