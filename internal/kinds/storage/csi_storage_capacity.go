package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func csiStorageCapacityKind() rule.Kind {
	return rule.Of[storagev1.CSIStorageCapacity](rule.Kind{
		// Kubernetes has columns for it that are not in use
		Group: storageV1, Kind: "CSIStorageCapacity", Plural: "csistoragecapacities",
		Warn: warnStorageCapacity,
	})
}

func warnStorageCapacity(w *rule.Warnings) {
	topology, path := object.Map(w.Obj, "nodeTopology"), field.NewPath("nodeTopology")
	pod.WarnNodeTerm(w, topology, path, false)
	for _, key := range object.Keys(object.Map(topology, "matchLabels")) {
		if text := pod.OldNodeLabels[key]; text != "" {
			w.Addf(path.Child("matchLabels", key), "%s", text)
		}
	}
}
