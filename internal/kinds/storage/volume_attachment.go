package storage

import (
	"math"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func volumeAttachmentKind() rule.Kind {
	return rule.Of[storagev1.VolumeAttachment](rule.Kind{
		Group: storageV1, Kind: "VolumeAttachment", Plural: "volumeattachments", ClusterScoped: true, Status: true,
		StatusOnly: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(attachmentCells), Default: defaultAttachment},
	})
}

func defaultAttachment(obj object.Object) {
	if inline := object.Map(object.Map(object.Map(obj, "spec"), "source"), "inlineVolumeSpec"); inline != nil {
		pod.RoundUp(inline, "capacity")
	}
}

func attachmentCells(a *storagev1.VolumeAttachment, e catalog.Env) []any {
	return []any{a.Name, a.Spec.Attacher, rule.Deref(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName,
		a.Status.Attached, rule.Ago(a.CreationTimestamp, e)}
}

// attacher checks the name of a driver. The declarative rule about it does not apply to a changed name: the error that
// the specification is immutable precedes it.
func attacher(val *rule.Validation, p rule.Value) {
	if val.Old != nil {
		rule.DriverName(val, p)
		return
	}
	rule.AnyDriver(val, p)
}

func attachmentSource(val *rule.Validation, p rule.Value) {
	s := p.Object()
	inline, volume := object.Map(s, "inlineVolumeSpec"), s["persistentVolumeName"]
	switch {
	case inline == nil && volume == nil:
		val.Required(p.Path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case inline != nil && volume != nil:
		val.Forbidden(p.Path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case volume == "":
		val.Required(p.Path.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")
	case inline != nil:
		val.Block("InlineVolumeSpec", inline, nil, p.Path.Child("inlineVolumeSpec"))
	}
}

// inlineVolume checks that an inline volume has a CSI driver, and no other source.
func inlineVolume(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	const not = "may not be specified in the context of inline volumes"
	if spec["claimRef"] != nil {
		val.Forbidden(p.Path.Child("claimRef"), not)
	}
	if !rule.IsEmpty(spec["capacity"]) {
		val.Forbidden(p.Path.Child("capacity"), not)
	}
	if spec["csi"] == nil {
		val.Required(p.Path.Child("csi"), "has to be specified in the context of inline volumes")
	}
	if policy := object.String(spec, "persistentVolumeReclaimPolicy"); policy != "" && policy != "Retain" {
		val.Forbidden(p.Path.Child("persistentVolumeReclaimPolicy"),
			"may only be Retain in the context of inline volumes")
	}
	if spec["nodeAffinity"] != nil {
		val.Forbidden(p.Path.Child("nodeAffinity"), not)
	}
	if object.String(spec, "storageClassName") != "" {
		val.Forbidden(p.Path.Child("storageClassName"), not)
	}
	if mode, ok := spec["volumeMode"]; ok && mode != "Filesystem" {
		val.Forbidden(p.Path.Child("volumeMode"),
			"may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
}

// mostMetadata is the largest size of a driver's metadata about an attachment, in bytes.
const mostMetadata = 256 << 10

func attachmentMetadata(val *rule.Validation, p rule.Value) {
	size := 0
	for key, v := range rule.StringMap(p.New) {
		size += len(key) + len(v)
	}
	if size > mostMetadata {
		val.Add(field.TooLong(p.Path, "", mostMetadata))
	}
}

func volumeError(val *rule.Validation, p rule.Value) {
	e := p.Object()
	if len(object.String(e, "message")) > 1024 {
		val.Add(field.TooLong(p.Path.Child("message"), "", 1024))
	}
	if n, _ := object.Int(e, "errorCode"); n < 0 {
		val.Invalid(p.Path.Child("errorCode"), n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

// volumeAttachmentFunctions are the functions that volume_attachment.txt names.
func volumeAttachmentFunctions() rule.Functions {
	return rule.Functions{
		"accessModes":        pod.AccessModes,
		"attacher":           attacher,
		"attachmentMetadata": attachmentMetadata,
		"attachmentSource":   attachmentSource,
		"attributesClass":    pod.AttributesClass,
		"inlineVolume":       inlineVolume,
		"volumeError":        volumeError,
		"volumeSpec":         pod.CheckVolumeSpec,
	}
}
