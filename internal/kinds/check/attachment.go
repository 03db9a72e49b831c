package check

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// attachmentFunctions are about attachments of volumes to nodes.
func attachmentFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"attachmentSource": attachmentSource, "inlineVolume": inlineVolume, "attachmentMetadata": attachmentMetadata,
		"volumeError": volumeError,
	}
}

func attachmentSource(j *judgement, p place) {
	s := p.object()
	inline, volume := inner(s, "inlineVolumeSpec"), s["persistentVolumeName"]
	switch {
	case inline == nil && volume == nil:
		j.required(p.path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case inline != nil && volume != nil:
		j.forbidden(p.path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case volume == "":
		j.required(p.path.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")
	case inline != nil:
		j.block("InlineVolumeSpec", inline, nil, p.path.Child("inlineVolumeSpec"))
	}
}

// inlineVolume: a volume that a pod spells out is of a driver, and nothing else is said of it.
func inlineVolume(j *judgement, p place) {
	spec := p.object()
	const not = "may not be specified in the context of inline volumes"
	if spec["claimRef"] != nil {
		j.forbidden(p.path.Child("claimRef"), not)
	}
	if !empty(spec["capacity"]) {
		j.forbidden(p.path.Child("capacity"), not)
	}
	if spec["csi"] == nil {
		j.required(p.path.Child("csi"), "has to be specified in the context of inline volumes")
	}
	if policy := text1(spec, "persistentVolumeReclaimPolicy"); policy != "" && policy != "Retain" {
		j.forbidden(p.path.Child("persistentVolumeReclaimPolicy"),
			"may only be Retain in the context of inline volumes")
	}
	if spec["nodeAffinity"] != nil {
		j.forbidden(p.path.Child("nodeAffinity"), not)
	}
	if text1(spec, "storageClassName") != "" {
		j.forbidden(p.path.Child("storageClassName"), not)
	}
	if mode, ok := spec["volumeMode"]; ok && mode != "Filesystem" {
		j.forbidden(p.path.Child("volumeMode"),
			"may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
}

// mostMetadata is how much a driver may say of an attachment, in bytes.
const mostMetadata = 256 << 10

func attachmentMetadata(j *judgement, p place) {
	size := 0
	for key, v := range pairs(p.value) {
		size += len(key) + len(v)
	}
	if size > mostMetadata {
		j.add(field.TooLong(p.path, "", mostMetadata))
	}
}

func volumeError(j *judgement, p place) {
	e := p.object()
	if len(text1(e, "message")) > 1024 {
		j.add(field.TooLong(p.path.Child("message"), "", mostMetadata)) // as Kubernetes has it
	}
	if n, _ := number(e, "errorCode"); n < 0 {
		j.invalid(p.path.Child("errorCode"), n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}
