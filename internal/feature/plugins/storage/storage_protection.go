package storage

import "github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"

// StorageProtection adds finalizers to claims, volumes and VolumeAttributesClasses; controllers remove them once the
// object is unused.
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
