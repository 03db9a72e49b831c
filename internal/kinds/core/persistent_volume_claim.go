package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

func persistentVolumeClaimKind() rule.Kind {
	return rule.Of[corev1.PersistentVolumeClaim](rule.Kind{
		Group: coreV1, Kind: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", Short: []string{"pvc"},
		Status: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(claimCells), PrepareCreate: prepareClaimCreate, PrepareUpdate: prepareClaimUpdate,
			Default: pod.RoundClaim, UnconditionalUpdate: true,
		},
		Warn: warnClaim,
	})
}

func prepareClaimCreate(obj object.Object, _ catalog.Env) {
	obj["status"] = map[string]any{"phase": string(corev1.ClaimPending)}
	spec := object.Child(obj, "spec")
	dropUnknownSource(spec)
	CopySource(spec)
}

func prepareClaimUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		rule.Keep(obj, old, "spec")
		return
	}
	rule.Keep(obj, old, "status")
	spec, was := object.Child(obj, "spec"), object.Map(old, "spec")
	if was["dataSource"] == nil && was["dataSourceRef"] == nil {
		dropUnknownSource(spec)
	}
	CopySource(spec)
}

// dropUnknownSource drops a data source that is neither a claim nor a snapshot, as older clients may send.
func dropUnknownSource(spec object.Object) {
	source := object.Map(spec, "dataSource")
	if source == nil || spec["dataSourceRef"] != nil {
		return
	}
	kind, group := object.String(source, "kind"), object.String(source, "apiGroup")
	known := kind == "PersistentVolumeClaim" && slices.Contains([]string{"", "v1"}, group) ||
		kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
	if !known {
		delete(spec, "dataSource")
	}
}

func warnClaim(w *rule.Warnings) {
	const class = "volume.beta.kubernetes.io/storage-class"
	if _, ok := w.Annotations()[class]; ok {
		w.Addf(field.NewPath("metadata", "annotations").Key(class),
			`deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	pod.WarnClaimSpec(w, object.Map(w.Obj, "spec"), field.NewPath("spec"))
}

// CopySource synchronizes the older and the newer field for the data source. spec is a claim's.
func CopySource(spec object.Object) {
	source, ref := object.Map(spec, "dataSource"), object.Map(spec, "dataSourceRef")
	switch {
	case source != nil && ref == nil:
		spec["dataSourceRef"] = runtime.DeepCopyJSON(source)
	case source == nil && ref != nil && object.String(ref, "namespace") == "":
		source = runtime.DeepCopyJSON(ref)
		delete(source, "namespace")
		spec["dataSource"] = source
	}
}

// claimUpdate lets a claim grow, be bound once, and change its VolumeAttributesClass while it is bound.
func claimUpdate(val *rule.Validation, _ rule.Value) {
	spec, was := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec")
	masked, maskedOld := runtime.DeepCopyJSON(spec), runtime.DeepCopyJSON(was)
	CopySource(maskedOld) // older claims have no dataSourceRef
	if object.String(was, "volumeName") == "" {
		pod.Keep(maskedOld, masked, "volumeName")
	}
	claimClass(val, masked, maskedOld)
	if object.String(object.Map(val.Obj, "status"), "phase") == "Bound" {
		if requests := object.Map(masked, "resources", "requests"); requests != nil {
			pod.Keep(requests, object.Map(was, "resources", "requests"), "storage")
		}
		pod.Keep(masked, was, "volumeAttributesClassName")
	}
	path := field.NewPath("spec")
	if !rule.Equivalent(masked, maskedOld) {
		val.Forbidden(path,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
				changed[corev1.PersistentVolumeClaimSpec](maskedOld, masked))
	}
	size, oldSize := rule.Quantity(object.Map(spec, "resources", "requests")["storage"]),
		rule.Quantity(object.Map(was, "resources", "requests")["storage"])
	granted := rule.Quantity(object.Map(val.Old, "status", "capacity")["storage"])
	if quantity.Cmp(size, oldSize) < 0 && quantity.Cmp(size, granted) <= 0 {
		val.Forbidden(path.Child("resources", "requests", "storage"), "field can not be less than status.capacity")
	}
	if !rule.Equivalent(spec["volumeMode"], was["volumeMode"]) {
		val.Invalid(field.NewPath("volumeMode"), spec["volumeMode"], "field is immutable")
	}
	class, ok := spec["volumeAttributesClassName"].(string)
	if rule.Equivalent(spec["volumeAttributesClassName"], was["volumeAttributesClassName"]) ||
		object.Map(val.Old, "status")["currentVolumeAttributesClassName"] == nil {
		return
	}
	switch path := path.Child("volumeAttributesClassName"); {
	case !ok:
		val.Forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	case class == "":
		val.Forbidden(path,
			"update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
	}
}

// claimClass masks the allowed changes of the storage class: from the annotation of old to the field, and from nothing.
func claimClass(val *rule.Validation, masked, old object.Object) {
	const beta = corev1.BetaStorageClassAnnotation
	annotations, oldAnnotations := object.Map(val.Obj, "metadata", "annotations"),
		object.Map(val.Old, "metadata", "annotations")
	now, was := masked["storageClassName"], old["storageClassName"]
	annotated, wasAnnotated := oldAnnotations[beta]
	again, isAnnotated := annotations[beta]
	if wasAnnotated && was == nil && now == annotated && (!isAnnotated || again == annotated) {
		delete(masked, "storageClassName")
		return
	}
	if object.String(annotations, beta) != object.String(oldAnnotations, beta) {
		val.Invalid(field.NewPath("metadata", "annotations", beta), object.String(annotations, beta),
			"field is immutable")
	}
	if now != nil && was == nil && (!wasAnnotated || now == annotated) {
		delete(masked, "storageClassName")
	}
}

var resizeStates = []string{"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
	"NodeResizeInfeasible", "NodeResizePending"}

func claimStatus(val *rule.Validation, _ rule.Value) {
	if rule.IsEmpty(object.Map(val.Obj, "spec")["accessModes"]) {
		val.Required(field.NewPath("Spec", "accessModes"), "")
	}
	status, path := object.Map(val.Obj, "status"), field.NewPath("status")
	for _, name := range object.Keys(object.Map(status, "capacity")) {
		basic(val, object.Map(status, "capacity")[name], path.Child("capacity").Key(name))
	}
	states := object.Map(status, "allocatedResourceStatuses")
	for _, name := range object.Keys(states) {
		at := path.Child("allocatedResourceStatuses")
		claimResource(val, name, at)
		if state, _ := states[name].(string); !slices.Contains(resizeStates, state) {
			val.Unsupported(at, name, resizeStates...)
		}
	}
	allocated := object.Map(status, "allocatedResources")
	for _, name := range object.Keys(allocated) {
		if at := path.Child("allocatedResources"); claimResource(val, name, at) {
			basic(val, allocated[name], at.Key(name))
		}
	}
}

func claimResource(val *rule.Validation, name string, path *field.Path) bool {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		val.Invalids(path, name, wrong)
		return false
	}
	if pod.IsNative(name) && name != "storage" {
		val.Unsupported(path, name, "storage")
		return false
	}
	return true
}

// persistentVolumeClaimFunctions are the functions that persistent_volume_claim.txt names.
func persistentVolumeClaimFunctions() rule.Functions {
	return rule.Functions{
		"claimStatus": claimStatus,
		"claimUpdate": claimUpdate,
	}
}
