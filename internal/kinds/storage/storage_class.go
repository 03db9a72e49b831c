package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func storageClassKind() rule.Kind {
	return rule.Of[storagev1.StorageClass](rule.Kind{
		Group: storageV1, Kind: "StorageClass", Plural: "storageclasses", Short: []string{"sc"}, ClusterScoped: true,
		ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(storageClassCells), VisibleOnReturn: true, UnconditionalUpdate: true,
		},
		Warn: warnStorageClass,
	})
}

func storageClassCells(c *storagev1.StorageClass, e catalog.Env) []any {
	name := c.Name
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	return []any{
		name, c.Provisioner, string(rule.Deref(c.ReclaimPolicy, "Delete")),
		string(rule.Deref(c.VolumeBindingMode, "Immediate")),
		rule.Deref(c.AllowVolumeExpansion, false), rule.Ago(c.CreationTimestamp, e),
	}
}

func warnStorageClass(w *rule.Warnings) {
	for i, topology := range rule.Objects(w.Obj["allowedTopologies"]) {
		for k, e := range rule.Objects(topology["matchLabelExpressions"]) {
			if text := pod.OldNodeLabels[object.String(e, "key")]; text != "" {
				w.Addf(field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(k).Child("key"),
					"%s", text)
			}
		}
	}
}

// storageClassFunctions are the functions that storage_class.txt names.
func storageClassFunctions() rule.Functions {
	return rule.Functions{
		"lowered":    lowered,
		"parameters": func(val *rule.Validation, p rule.Value) { parameters(val, p) },
		"topologies": topologies,
	}
}
