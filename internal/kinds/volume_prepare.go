package kinds

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/check"
)

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func prepareVolumeCreate(obj catalog.Object, e catalog.Env) {
	obj["status"] = map[string]any{"phase": string(corev1.VolumePending), "lastPhaseTransitionTime": stamp(e.Now)}
}

// prepareVolumeUpdate notes when a volume has come into its phase.
func prepareVolumeUpdate(obj, old catalog.Object, subresource string, e catalog.Env) {
	if subresource != "status" {
		keep(obj, old, "status")
		return
	}
	keep(obj, old, "spec")
	status, was := child(obj, "status"), catalog.At(old, "status")
	since := status["lastPhaseTransitionTime"]
	switch entered := status["phase"] != was["phase"]; {
	case !entered && since == nil:
		keep(status, was, "lastPhaseTransitionTime")
	case entered && (since == nil || since == was["lastPhaseTransitionTime"]):
		status["lastPhaseTransitionTime"] = stamp(e.Now)
	}
}

func prepareClaimCreate(obj catalog.Object, _ catalog.Env) {
	obj["status"] = map[string]any{"phase": string(corev1.ClaimPending)}
	spec := child(obj, "spec")
	dropUnknownSource(spec)
	check.CopySource(spec)
}

func prepareClaimUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		return
	}
	keep(obj, old, "status")
	spec, was := child(obj, "spec"), catalog.At(old, "spec")
	if was["dataSource"] == nil && was["dataSourceRef"] == nil {
		dropUnknownSource(spec)
	}
	check.CopySource(spec)
}

// dropUnknownSource drops a source of data that is neither a claim nor a snapshot, which older clients may send in
// vain.
func dropUnknownSource(spec catalog.Object) {
	source := catalog.At(spec, "dataSource")
	if source == nil || spec["dataSourceRef"] != nil {
		return
	}
	kind, group := catalog.Text(source, "kind"), catalog.Text(source, "apiGroup")
	known := kind == "PersistentVolumeClaim" && slices.Contains([]string{"", "v1"}, group) ||
		kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
	if !known {
		delete(spec, "dataSource")
	}
}
