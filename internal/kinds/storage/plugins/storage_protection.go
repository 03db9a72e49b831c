package plugins

import (
	"context"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/plugin"
)

// StorageProtection keeps claims, volumes and classes of attributes while they are in use: controllers take these
// finalizers away.
func StorageProtection(plugin.Config) []plugin.Rule {
	return []plugin.Rule{
		{
			Plural: "persistentvolumeclaims", Operations: plugin.Creates,
			Mutate: finalize("kubernetes.io/pvc-protection"),
		},
		{Plural: "persistentvolumes", Operations: plugin.Creates, Mutate: finalize("kubernetes.io/pv-protection")},
		{
			Group: "storage.k8s.io", Plural: "volumeattributesclasses", Operations: plugin.Creates,
			Mutate: finalize("kubernetes.io/vac-protection"),
		},
	}
}

// finalize adds a finalizer to objects that lack it.
func finalize(name string) plugin.Step {
	return func(_ context.Context, a *admit.Attributes) error {
		if list, _ := catalog.At(a.Object, "metadata")["finalizers"].([]any); !slices.Contains(list, any(name)) {
			a.Edit("metadata")["finalizers"] = append(slices.Clip(list), name)
		}
		return nil
	}
}
