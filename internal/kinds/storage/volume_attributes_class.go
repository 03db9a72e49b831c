package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func volumeAttributesClassKind() rule.Kind {
	return rule.Of[storagev1.VolumeAttributesClass](rule.Kind{
		Group: storageV1, Kind: "VolumeAttributesClass", Plural: "volumeattributesclasses", Short: []string{"vac"},
		ClusterScoped: true, ReturnsDeleted: true,
		Also:     rule.OnDemand[storagev1beta1.VolumeAttributesClass](storageV1beta1),
		Strategy: &catalog.Strategy{Cells: rule.Printed(attributesClassCells), UnconditionalUpdate: true},
	})
}

func attributesClassCells(c *storagev1.VolumeAttributesClass, e catalog.Env) []any {
	return []any{c.Name, c.DriverName, rule.Ago(c.CreationTimestamp, e)}
}

var storageV1beta1 = rule.Group{Name: "storage.k8s.io", Version: "v1beta1", Priority: 16800, Rank: 9}

// volumeAttributesClassFunctions are the functions that volume_attributes_class.txt names.
func volumeAttributesClassFunctions() rule.Functions {
	return rule.Functions{
		"attributesUpdate": attributesUpdate,
		"someParameters":   someParameters,
	}
}
