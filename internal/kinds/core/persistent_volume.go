package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func persistentVolumeKind() rule.Kind {
	return rule.Of[corev1.PersistentVolume](rule.Kind{
		Group: coreV1, Kind: "PersistentVolume", Plural: "persistentvolumes", Short: []string{"pv"},
		ClusterScoped: true, Status: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(volumeCells), PrepareCreate: prepareVolumeCreate, PrepareUpdate: prepareVolumeUpdate,
			Default: defaultVolume, UnconditionalUpdate: true,
		},
		Warn: warnVolume,
	})
}

func nodeCells(n *corev1.Node, e catalog.Env) []any {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "Ready"
			if c.Status != corev1.ConditionTrue {
				status = "NotReady"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	info := n.Status.NodeInfo
	kernel := rule.OrText(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		n.Name, status, rule.OrNone(strings.Join(nodeRoles(n), ",")), rule.Ago(n.CreationTimestamp, e),
		info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
		rule.OrText(info.OSImage, "<unknown>"),
		kernel, rule.OrText(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

// nodeRoles returns the roles in the labels of a node.
func nodeRoles(n *corev1.Node) []string {
	var roles []string
	for key, v := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		} else if key == "kubernetes.io/role" {
			roles = append(roles, v)
		}
	}
	return rule.Distinct(roles)
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return rule.None
}

func defaultVolume(obj object.Object) {
	if spec, ok := obj["spec"].(map[string]any); ok {
		pod.RoundUp(spec, "capacity")
	}
}

func volumeCells(v *corev1.PersistentVolume, e catalog.Env) []any {
	claim := ""
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	size := v.Spec.Capacity[corev1.ResourceStorage]
	class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = v.Spec.StorageClassName
	}
	return []any{
		v.Name, size.String(), accessModes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase,
		claim, class,
		rule.Deref(v.Spec.VolumeAttributesClassName, rule.Unset), v.Status.Reason, rule.Ago(v.CreationTimestamp, e),
		string(rule.Deref(v.Spec.VolumeMode, rule.Unset)),
	}
}

func claimCells(c *corev1.PersistentVolumeClaim, e catalog.Env) []any {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = size.String(), accessModes(c.Status.AccessModes)
	}
	class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = rule.Deref(c.Spec.StorageClassName, "")
	}
	return []any{
		c.Name, phase, c.Spec.VolumeName, capacity, modes, class,
		rule.Deref(c.Spec.VolumeAttributesClassName, rule.Unset), rule.Ago(c.CreationTimestamp, e),
		string(rule.Deref(c.Spec.VolumeMode, rule.Unset)),
	}
}

// accessModes abbreviates the known modes, in their fixed order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}

func prepareVolumeCreate(obj object.Object, e catalog.Env) {
	obj["status"] = map[string]any{"phase": string(corev1.VolumePending), "lastPhaseTransitionTime": rule.Stamp(e.Now)}
}

// prepareVolumeUpdate records the time of a change of a volume's phase.
func prepareVolumeUpdate(obj, old object.Object, subresource string, e catalog.Env) {
	if subresource != "status" {
		rule.Keep(obj, old, "status")
		return
	}
	rule.Keep(obj, old, "spec")
	status, was := object.Child(obj, "status"), object.Map(old, "status")
	since := status["lastPhaseTransitionTime"]
	switch entered := status["phase"] != was["phase"]; {
	case !entered && since == nil:
		rule.Keep(status, was, "lastPhaseTransitionTime")
	case entered && (since == nil || since == was["lastPhaseTransitionTime"]):
		status["lastPhaseTransitionTime"] = rule.Stamp(e.Now)
	}
}

func warnVolume(w *rule.Warnings) {
	spec, path := object.Map(w.Obj, "spec"), field.NewPath("spec")
	annotations := w.Annotations()
	for _, old := range [][2]string{
		{"volume.beta.kubernetes.io/storage-class", `deprecated since v1.8; use "storageClassName" attribute instead`},
		{"volume.beta.kubernetes.io/mount-options", `deprecated since v1.31; use "mountOptions" attribute instead`},
	} {
		if _, ok := annotations[old[0]]; ok {
			w.Addf(field.NewPath("metadata", "annotations").Key(old[0]), "%s", old[1])
		}
	}
	if object.String(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
		w.Addf(path.Child("persistentVolumeReclaimPolicy"),
			"The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	for i, term := range rule.Objects(object.Map(spec, "nodeAffinity", "required")["nodeSelectorTerms"]) {
		pod.WarnNodeTerm(w, term, path.Child("nodeAffinity", "required", "nodeSelectorTerms").Index(i), false)
	}
	for _, name := range []string{"cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"} {
		if spec[name] != nil {
			w.Addf(path.Child(pod.GoName(name)), "%s", oldVolume(name))
		}
	}
}

func oldVolume(name string) string {
	for _, v := range pod.OldVolumes {
		if v[0] == name {
			return v[1]
		}
	}
	return ""
}

func capacity(val *rule.Validation, p rule.Value) {
	at, all := p.Path.Child("capacity"), object.Map(p.Object(), "capacity")
	if _, ok := all["storage"]; !ok || len(all) > 1 {
		val.Unsupported(at, all, "storage")
	}
	for _, name := range object.Keys(all) {
		basic(val, all[name], at.Key(name))
		if q := rule.Quantity(all[name]); q.Sign() <= 0 {
			val.Invalid(at.Key(name), q.String(), "must be greater than zero")
		}
	}
}

// newerLabels maps deprecated node labels to their replacements, to which an affinity may be changed.
var newerLabels = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
}

func volumeUpdate(val *rule.Validation, _ rule.Value) {
	spec, was := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec")
	source, oldSource := runtime.DeepCopyJSON(onlySource(spec)), onlySource(was)
	if csi, old := object.Map(source, "csi"), object.Map(oldSource, "csi"); csi != nil && old != nil &&
		old["controllerExpandSecretRef"] == nil {
		delete(csi, "controllerExpandSecretRef") // may be set once
	}
	if !rule.Equivalent(source, oldSource) {
		val.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+
				changed[corev1.PersistentVolumeSource](oldSource, source))
	}
	if !rule.Equivalent(spec["volumeMode"], was["volumeMode"]) {
		val.Invalid(field.NewPath("volumeMode"), spec["volumeMode"], "field is immutable")
	}
	if was["nodeAffinity"] != nil && !sameAffinity(spec["nodeAffinity"], was["nodeAffinity"]) {
		val.Invalid(field.NewPath("nodeAffinity"), spec["nodeAffinity"],
			"field is immutable, except for updating from beta label to GA")
	}
	if was["volumeAttributesClassName"] != nil && spec["volumeAttributesClassName"] == nil {
		val.Forbidden(field.NewPath("spec", "volumeAttributesClassName"),
			"update from non-nil value to nil is forbidden")
	}
}

// onlySource returns the volume source fields of a volume's spec.
func onlySource(spec object.Object) object.Object {
	out := object.Object{}
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
	terms := func(v any) []object.Object {
		o, _ := v.(object.Object)
		return rule.Objects(object.Map(o, "required")["nodeSelectorTerms"])
	}
	a, b := terms(now), terms(was)
	for i := range min(len(a), len(b)) {
		x, y := rule.Objects(a[i]["matchExpressions"]), rule.Objects(b[i]["matchExpressions"])
		for k := range min(len(x), len(y)) {
			// "" too, as in Kubernetes
			if newer := newerLabels[object.String(y[k], "key")]; newer == object.String(x[k], "key") {
				y[k]["key"] = object.String(x[k], "key")
			}
		}
	}
	return rule.Equivalent(now, was)
}

// persistentVolumeFunctions are the functions that persistent_volume.txt names.
func persistentVolumeFunctions() rule.Functions {
	return rule.Functions{
		"accessModes":     pod.AccessModes,
		"attributesClass": pod.AttributesClass,
		"capacity":        capacity,
		"volumeSpec":      pod.CheckVolumeSpec,
		"volumeUpdate":    volumeUpdate,
	}
}
