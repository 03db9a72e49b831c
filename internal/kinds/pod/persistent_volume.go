package pod

import (
	"path"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// CheckVolumeSpec validates the fields that depend on the source of a volume.
func CheckVolumeSpec(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	if local := object.Map(spec, "local"); local != nil && spec["nodeAffinity"] == nil && sourceOf(spec) == "local" {
		val.Required(p.Path.Child("nodeAffinity"), "Local volume requires node affinity")
	}
	if host := object.Map(spec, "hostPath"); host != nil && path.Clean(object.String(host, "path")) == "/" &&
		object.String(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
		val.Forbidden(p.Path.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}

// sourceOf returns the source that counts if there are several.
func sourceOf(spec object.Object) string {
	for _, name := range []string{
		"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte",
		"cephfs", "iscsi", "cinder", "fc",
		"flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO",
		"local", "storageos", "csi",
	} {
		if spec[name] != nil {
			return name
		}
	}
	return ""
}

// AttributesClass checks the volumeAttributesClassName of a volume, which is only for CSI volumes.
func AttributesClass(val *rule.Validation, p rule.Value) {
	name, ok := p.Object()["volumeAttributesClassName"].(string)
	if !ok {
		return
	}
	at := p.Path.Child("volumeAttributesClassName")
	if name == "" {
		val.Required(at, "an empty string is disallowed")
	} else {
		val.Invalids(at, name, validation.IsDNS1123Subdomain(name))
	}
	if p.Object()["csi"] == nil {
		val.Required(p.Path.Child("csi"), "has to be specified when using volumeAttributesClassName")
	}
}

func endpointsNamespace(val *rule.Validation, p rule.Value) {
	switch s, ok := p.New.(string); {
	case !ok:
	case s == "":
		val.Invalid(p.Path, s, "if the endpointnamespace is set, it must be a valid namespace name")
	default:
		val.Invalids(p.Path, s, validation.IsDNS1123Label(s))
	}
}

func iscsiPersistent(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	portal := object.String(obj, "targetPortal")
	if name := object.String(object.Map(val.Obj, "metadata"), "name"); obj["initiatorName"] != nil &&
		len(name+":"+portal) > 64 {
		val.Invalid(p.Path.Child("targetportal"), portal, rule.ISCSITooLong)
	}
	if s := object.String(obj, "iqn"); s != "" && rule.Initiator(s) != nil {
		val.Invalid(p.Path.Child("iqn"), s, "must be valid format")
	}
	if s, ok := obj["initiatorName"].(string); ok && rule.Initiator(s) != nil {
		val.Invalid(p.Path.Child("initiatorname"), s, "must be valid format")
	}
}

// notEmpty rejects a string that is set and empty.
func notEmpty(val *rule.Validation, p rule.Value) {
	if p.New == "" {
		val.Required(p.Path, "")
	}
}

// persistentVolumeFunctions are the functions that persistent_volume.txt names.
func persistentVolumeFunctions() rule.Functions {
	return rule.Functions{
		"endpointsNamespace": endpointsNamespace,
		"iscsiPersistent":    iscsiPersistent,
		"notEmpty":           notEmpty,
	}
}
