package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func csiNodeKind() rule.Kind {
	return rule.Of[storagev1.CSINode](rule.Kind{
		Group: storageV1, Kind: "CSINode", Plural: "csinodes", ClusterScoped: true, ReturnsDeleted: true,
		Status: true, StatusOnly: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(csiNodeCells)},
	})
}

func csiNodeCells(n *storagev1.CSINode, e catalog.Env) []any {
	return []any{n.Name, int64(len(n.Spec.Drivers)), rule.Ago(n.CreationTimestamp, e)}
}

// csiNodeFunctions are the functions that csi_node.txt names.
func csiNodeFunctions() rule.Functions {
	return rule.Functions{
		"driversOnce":  driversOnce,
		"driversStay":  driversStay,
		"nodeID":       nodeID,
		"topologyKeys": topologyKeys,
	}
}
