package check

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// claimFunctions are about PersistentVolumeClaims and PersistentVolumes.
func claimFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"accessModes":        accessModes,
		"claimSize":          claimSize,
		"dataSource":         dataSource,
		"dataSources":        dataSources,
		"claimUpdate":        claimUpdate,
		"claimStatus":        claimStatus,
		"capacity":           capacity,
		"volumeSpec":         volumeSpec,
		"attributesClass":    attributesClass,
		"volumeUpdate":       volumeUpdate,
		"endpointsNamespace": endpointsNamespace,
		"iscsiPersistent":    iscsiPersistent,
	}
}

func accessModes(j *judgement, p place) {
	known := []string{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}
	alone, others := false, false
	for _, mode := range texts(p.value) {
		switch {
		case !slices.Contains(known, mode):
			j.unsupported(p.path, mode, known...)
		case mode == "ReadWriteOncePod":
			alone = true
		default:
			others = true
		}
	}
	if alone && others {
		j.forbidden(p.path, "may not use ReadWriteOncePod with other access modes")
	}
}

func claimSize(j *judgement, p place) {
	at := p.path.Child("resources").Key("storage")
	v, ok := inner(p.object(), "resources", "requests")["storage"]
	if !ok {
		j.required(at, "")
	} else if q := quantity(v); q.Sign() <= 0 {
		j.invalid(at, q.String(), "must be greater than zero")
	}
}

func dataSource(j *judgement, p place) {
	group, kind := text1(p.object(), "apiGroup"), text1(p.object(), "kind")
	if group == "" && kind != "PersistentVolumeClaim" {
		j.invalid(p.path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
	}
	if group != "" && (j.old == nil || !hadGroup(inner(j.old, "spec"))) {
		j.invalids(p.path.Child("apiGroup"), group, validation.IsDNS1123Subdomain(group))
	}
}

// hadGroup tells whether a claim says where its data come from by a group: such a one was not always judged.
func hadGroup(spec object) bool {
	return inner(spec, "dataSource")["apiGroup"] != nil || inner(spec, "dataSourceRef")["apiGroup"] != nil
}

// dataSources wants both fields for the source of data to say the same.
func dataSources(j *judgement, p place) {
	a, b := inner(p.object(), "dataSource"), inner(p.object(), "dataSourceRef")
	if a == nil || b == nil {
		return
	}
	// Kubernetes shows a path where the value belongs, which is printed as an empty object.
	switch {
	case text1(b, "namespace") != "":
		j.invalid(p.path, object{}, "may not be specified when dataSourceRef.namespace is specified")
	case a["apiGroup"] != b["apiGroup"] || text1(a, "kind") != text1(b, "kind") || text1(a, "name") != text1(b, "name"):
		j.invalid(p.path, object{}, "must match dataSourceRef")
	}
}

// CopySource makes the older and the newer field for the source of a claim's data say the same. spec is a claim's.
func CopySource(spec object) {
	source, ref := inner(spec, "dataSource"), inner(spec, "dataSourceRef")
	switch {
	case source != nil && ref == nil:
		spec["dataSourceRef"] = runtime.DeepCopyJSON(source)
	case source == nil && ref != nil && text1(ref, "namespace") == "":
		source = runtime.DeepCopyJSON(ref)
		delete(source, "namespace")
		spec["dataSource"] = source
	}
}

// claimUpdate lets a claim grow, be bound once, and change its class of attributes while it is bound.
func claimUpdate(j *judgement, _ place) {
	spec, was := inner(j.obj, "spec"), inner(j.old, "spec")
	masked, maskedOld := runtime.DeepCopyJSON(spec), runtime.DeepCopyJSON(was)
	CopySource(maskedOld) // which a claim from before dataSourceRef does not have
	if text1(was, "volumeName") == "" {
		keep(maskedOld, masked, "volumeName")
	}
	j.claimClass(masked, maskedOld)
	if text1(inner(j.obj, "status"), "phase") == "Bound" {
		if requests := inner(masked, "resources", "requests"); requests != nil {
			keep(requests, inner(was, "resources", "requests"), "storage")
		}
		keep(masked, was, "volumeAttributesClassName")
	}
	path := field.NewPath("spec")
	if !same(masked, maskedOld) {
		j.forbidden(path,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
				changed[corev1.PersistentVolumeClaimSpec](maskedOld, masked))
	}
	size, oldSize := quantity(inner(spec, "resources", "requests")["storage"]),
		quantity(inner(was, "resources", "requests")["storage"])
	if granted := quantity(inner(j.old, "status", "capacity")["storage"]); size.Cmp(oldSize) < 0 &&
		size.Cmp(granted) <= 0 {
		j.forbidden(path.Child("resources", "requests", "storage"), "field can not be less than status.capacity")
	}
	if !same(spec["volumeMode"], was["volumeMode"]) {
		j.invalid(field.NewPath("volumeMode"), spec["volumeMode"], "field is immutable")
	}
	class, ok := spec["volumeAttributesClassName"].(string)
	if same(spec["volumeAttributesClassName"], was["volumeAttributesClassName"]) ||
		inner(j.old, "status")["currentVolumeAttributesClassName"] == nil {
		return
	}
	switch path := path.Child("volumeAttributesClassName"); {
	case !ok:
		j.forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	case class == "":
		j.forbidden(path, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
	}
}

// claimClass masks those changes of the storage class that are allowed: from the annotation of old to the field, and
// from nothing.
func (j *judgement) claimClass(masked, old object) {
	const beta = corev1.BetaStorageClassAnnotation
	annotations, oldAnnotations := inner(j.obj, "metadata", "annotations"), inner(j.old, "metadata", "annotations")
	now, was := masked["storageClassName"], old["storageClassName"]
	annotated, wasAnnotated := oldAnnotations[beta]
	again, isAnnotated := annotations[beta]
	if wasAnnotated && was == nil && now == annotated && (!isAnnotated || again == annotated) {
		delete(masked, "storageClassName")
		return
	}
	if text1(annotations, beta) != text1(oldAnnotations, beta) {
		j.invalid(field.NewPath("metadata", "annotations", beta), text1(annotations, beta), "field is immutable")
	}
	if now != nil && was == nil && (!wasAnnotated || now == annotated) {
		delete(masked, "storageClassName")
	}
}

// keep makes the value under name what it is in from.
func keep(obj, from object, name string) {
	if v, ok := from[name]; ok {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

var resizeStates = []string{"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
	"NodeResizeInfeasible", "NodeResizePending"}

func claimStatus(j *judgement, _ place) {
	if empty(inner(j.obj, "spec")["accessModes"]) {
		j.required(field.NewPath("Spec", "accessModes"), "")
	}
	status, path := inner(j.obj, "status"), field.NewPath("status")
	for _, name := range keys(inner(status, "capacity")) {
		j.basic(inner(status, "capacity")[name], path.Child("capacity").Key(name))
	}
	states := inner(status, "allocatedResourceStatuses")
	for _, name := range keys(states) {
		at := path.Child("allocatedResourceStatuses")
		j.claimResource(name, at)
		if state, _ := states[name].(string); !slices.Contains(resizeStates, state) {
			j.unsupported(at, name, resizeStates...)
		}
	}
	allocated := inner(status, "allocatedResources")
	for _, name := range keys(allocated) {
		if at := path.Child("allocatedResources"); j.claimResource(name, at) {
			j.basic(allocated[name], at.Key(name))
		}
	}
}

// basic judges an amount as Kubernetes did before it had words for more.
func (j *judgement) basic(v any, path *field.Path) {
	if q := quantity(v); q.Value() < 0 {
		j.invalid(path, q.Value(), "must be a valid resource quantity")
	}
}

func (j *judgement) claimResource(name string, path *field.Path) bool {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		j.invalids(path, name, wrong)
		return false
	}
	if native(name) && name != "storage" {
		j.unsupported(path, name, "storage")
		return false
	}
	return true
}

func capacity(j *judgement, p place) {
	at, all := p.path.Child("capacity"), inner(p.object(), "capacity")
	if _, ok := all["storage"]; !ok || len(all) > 1 {
		j.unsupported(at, all, "storage")
	}
	for _, name := range keys(all) {
		j.basic(all[name], at.Key(name))
		if q := quantity(all[name]); q.Cmp(resource.Quantity{}) <= 0 {
			j.invalid(at.Key(name), q.String(), "must be greater than zero")
		}
	}
}

// volumeSpec judges what the source of a volume demands of the rest.
func volumeSpec(j *judgement, p place) {
	spec := p.object()
	if local := inner(spec, "local"); local != nil && spec["nodeAffinity"] == nil && sourceOf(spec) == "local" {
		j.required(p.path.Child("nodeAffinity"), "Local volume requires node affinity")
	}
	if host := inner(spec, "hostPath"); host != nil && path.Clean(text1(host, "path")) == "/" &&
		text1(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
		j.forbidden(p.path.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}

// sourceOf returns the source that counts if there are several.
func sourceOf(spec object) string {
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

func attributesClass(j *judgement, p place) {
	name, ok := p.object()["volumeAttributesClassName"].(string)
	if !ok {
		return
	}
	at := p.path.Child("volumeAttributesClassName")
	if name == "" {
		j.required(at, "an empty string is disallowed")
	} else {
		j.invalids(at, name, validation.IsDNS1123Subdomain(name))
	}
	if p.object()["csi"] == nil {
		j.required(p.path.Child("csi"), "has to be specified when using volumeAttributesClassName")
	}
}

// newerLabels are the names of today for labels of nodes, to which an affinity may be changed.
var newerLabels = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
}

func volumeUpdate(j *judgement, _ place) {
	spec, was := inner(j.obj, "spec"), inner(j.old, "spec")
	source, oldSource := runtime.DeepCopyJSON(onlySource(spec)), onlySource(was)
	if csi, old := inner(source, "csi"), inner(oldSource, "csi"); csi != nil && old != nil &&
		old["controllerExpandSecretRef"] == nil {
		delete(csi, "controllerExpandSecretRef") // may be set once
	}
	if !same(source, oldSource) {
		j.forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+
				changed[corev1.PersistentVolumeSource](oldSource, source))
	}
	if !same(spec["volumeMode"], was["volumeMode"]) {
		j.invalid(field.NewPath("volumeMode"), spec["volumeMode"], "field is immutable")
	}
	if was["nodeAffinity"] != nil && !sameAffinity(spec["nodeAffinity"], was["nodeAffinity"]) {
		j.invalid(field.NewPath("nodeAffinity"), spec["nodeAffinity"],
			"field is immutable, except for updating from beta label to GA")
	}
	if was["volumeAttributesClassName"] != nil && spec["volumeAttributesClassName"] == nil {
		j.forbidden(field.NewPath("spec", "volumeAttributesClassName"), "update from non-nil value to nil is forbidden")
	}
}

// onlySource returns those fields of a volume's spec that say what it is.
func onlySource(spec object) object {
	out := object{}
	for name, v := range spec {
		switch name {
		case "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
			"volumeMode", "nodeAffinity", "volumeAttributesClassName":
		default:
			out[name] = v
		}
	}
	return out
}

func sameAffinity(now, was any) bool {
	now, was = runtime.DeepCopyJSONValue(now), runtime.DeepCopyJSONValue(was)
	terms := func(v any) []object {
		o, _ := v.(object)
		return objects(inner(o, "required")["nodeSelectorTerms"])
	}
	a, b := terms(now), terms(was)
	for i := range min(len(a), len(b)) {
		x, y := objects(a[i]["matchExpressions"]), objects(b[i]["matchExpressions"])
		for k := range min(len(x), len(y)) {
			if newer := newerLabels[text1(y[k], "key")]; newer == text1(x[k], "key") { // "" too, as in Kubernetes
				y[k]["key"] = text1(x[k], "key")
			}
		}
	}
	return same(now, was)
}

func endpointsNamespace(j *judgement, p place) {
	switch s, ok := p.value.(string); {
	case !ok:
	case s == "":
		j.invalid(p.path, s, "if the endpointnamespace is set, it must be a valid namespace name")
	default:
		j.invalids(p.path, s, validation.IsDNS1123Label(s))
	}
}

func iscsiPersistent(j *judgement, p place) {
	obj := p.object()
	portal := text1(obj, "targetPortal")
	if name := text1(inner(j.obj, "metadata"), "name"); obj["initiatorName"] != nil && len(name+":"+portal) > 64 {
		j.invalid(p.path.Child("targetportal"), portal, iscsiTooLong)
	}
	if s := text1(obj, "iqn"); s != "" && initiator(s) != nil {
		j.invalid(p.path.Child("iqn"), s, "must be valid format")
	}
	if s, ok := obj["initiatorName"].(string); ok && initiator(s) != nil {
		j.invalid(p.path.Child("initiatorname"), s, "must be valid format")
	}
}

// changed shows the difference between two values of a type.
func changed[T any](was, now any) string { return fmt.Sprint(difference(as[T](was), as[T](now))) }
