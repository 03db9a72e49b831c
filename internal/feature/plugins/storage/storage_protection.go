package storage

import "github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"

// StorageProtection keeps claims, volumes and classes of attributes while they are in use: controllers take these
// finalizers away.
func StorageProtection(plugin.Config) []plugin.Rule {
	return []plugin.Rule{
		{
			Plural: "persistentvolumeclaims", Operations: plugin.Creates,
			Mutate: plugin.Finalize("kubernetes.io/pvc-protection"),
		},
		{
			Plural: "persistentvolumes", Operations: plugin.Creates,
			Mutate: plugin.Finalize("kubernetes.io/pv-protection"),
		},
		{
			Group: "storage.k8s.io", Plural: "volumeattributesclasses", Operations: plugin.Creates,
			Mutate: plugin.Finalize("kubernetes.io/vac-protection"),
		},
	}
}
