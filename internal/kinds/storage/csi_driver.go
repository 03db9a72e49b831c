package storage

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func csiDriverKind() rule.Kind {
	return rule.Of[storagev1.CSIDriver](rule.Kind{
		Group: storageV1, Kind: "CSIDriver", Plural: "csidrivers", ClusterScoped: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(csiDriverCells), PrepareUpdate: prepareDriverUpdate,
		},
		Warn: warnCsiDriver,
	})
}

func csiDriverCells(d *storagev1.CSIDriver, e catalog.Env) []any {
	var modes []string
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	tokens := rule.Unset
	if d.Spec.TokenRequests != nil {
		var audiences []string
		for _, t := range d.Spec.TokenRequests {
			audiences = append(audiences, t.Audience)
		}
		tokens = strings.Join(audiences, ",")
	}
	return []any{
		d.Name, rule.Deref(d.Spec.AttachRequired, true), rule.Deref(d.Spec.PodInfoOnMount, false),
		rule.Deref(d.Spec.StorageCapacity, false),
		tokens, rule.Deref(d.Spec.RequiresRepublish, false), rule.OrNone(strings.Join(modes, ",")),
		rule.Ago(d.CreationTimestamp, e),
	}
}

// prepareDriverUpdate counts changes of spec; a new driver has no generation.
func prepareDriverUpdate(obj, old object.Object, _ string, _ catalog.Env) {
	rule.CountChange(obj, old)
}

func warnCsiDriver(w *rule.Warnings) {
	spec := object.Map(w.Obj, "spec")
	if len(rule.Objects(spec["tokenRequests"])) == 0 || spec["serviceAccountTokenInSecrets"] != nil {
		return
	}
	if w.Old == nil || !rule.Equivalent(object.Map(w.Old, "spec")["tokenRequests"], spec["tokenRequests"]) {
		w.AddText(
			"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes")
	}
}

// csiDriverFunctions are the functions that csi_driver.txt names.
func csiDriverFunctions() rule.Functions {
	return rule.Functions{
		"attachRequired": attachRequired,
		"driverUpdate":   driverUpdate,
		"lifecycleModes": lifecycleModes,
		"tokenInSecrets": tokenInSecrets,
		"tokenRequests":  tokenRequests,
	}
}
