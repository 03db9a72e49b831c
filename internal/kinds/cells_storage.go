package kinds

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

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
	kernel := orText(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		n.Name, status, orNone(strings.Join(nodeRoles(n), ",")), ago(n.CreationTimestamp, e), info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP), orText(info.OSImage, "<unknown>"),
		kernel, orText(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

// nodeRoles are what labels say that the node is for.
func nodeRoles(n *corev1.Node) []string {
	var roles []string
	for key, v := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		} else if key == "kubernetes.io/role" {
			roles = append(roles, v)
		}
	}
	return distinct(roles)
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
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
		deref(v.Spec.VolumeAttributesClassName, unset), v.Status.Reason, ago(v.CreationTimestamp, e),
		string(deref(v.Spec.VolumeMode, unset)),
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
		class = deref(c.Spec.StorageClassName, "")
	}
	return []any{
		c.Name, phase, c.Spec.VolumeName, capacity, modes, class,
		deref(c.Spec.VolumeAttributesClassName, unset), ago(c.CreationTimestamp, e),
		string(deref(c.Spec.VolumeMode, unset)),
	}
}

// accessModes abbreviates the known ones, in their fixed order.
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

func storageClassCells(c *storagev1.StorageClass, e catalog.Env) []any {
	name := c.Name
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	return []any{
		name, c.Provisioner, string(deref(c.ReclaimPolicy, "Delete")), string(deref(c.VolumeBindingMode, "Immediate")),
		deref(c.AllowVolumeExpansion, false), ago(c.CreationTimestamp, e),
	}
}

func attributesClassCells(c *storagev1.VolumeAttributesClass, e catalog.Env) []any {
	return []any{c.Name, c.DriverName, ago(c.CreationTimestamp, e)}
}

func attachmentCells(a *storagev1.VolumeAttachment, e catalog.Env) []any {
	return []any{a.Name, a.Spec.Attacher, deref(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName,
		a.Status.Attached, ago(a.CreationTimestamp, e)}
}

func csiDriverCells(d *storagev1.CSIDriver, e catalog.Env) []any {
	var modes []string
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	tokens := unset
	if d.Spec.TokenRequests != nil {
		var audiences []string
		for _, t := range d.Spec.TokenRequests {
			audiences = append(audiences, t.Audience)
		}
		tokens = strings.Join(audiences, ",")
	}
	return []any{
		d.Name, deref(d.Spec.AttachRequired, true), deref(d.Spec.PodInfoOnMount, false),
		deref(d.Spec.StorageCapacity, false),
		tokens, deref(d.Spec.RequiresRepublish, false), orNone(strings.Join(modes, ",")), ago(d.CreationTimestamp, e),
	}
}

func csiNodeCells(n *storagev1.CSINode, e catalog.Env) []any {
	return []any{n.Name, int64(len(n.Spec.Drivers)), ago(n.CreationTimestamp, e)}
}

func runtimeClassCells(c *nodev1.RuntimeClass, e catalog.Env) []any {
	return []any{c.Name, c.Handler, ago(c.CreationTimestamp, e)}
}

func priorityClassCells(c *schedulingv1.PriorityClass, e catalog.Env) []any {
	return []any{c.Name, int64(c.Value), c.GlobalDefault, ago(c.CreationTimestamp, e),
		string(deref(c.PreemptionPolicy, ""))}
}

func resourceClaimCells(c *resourcev1.ResourceClaim, e catalog.Env) []any {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	} else if c.Status.Allocation == nil {
		states = append(states, "pending")
	}
	if c.Status.Allocation != nil {
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return []any{c.Name, strings.Join(states, ","), ago(c.CreationTimestamp, e)}
}

func resourceSliceCells(s *resourcev1.ResourceSlice, e catalog.Env) []any {
	return []any{s.Name, deref(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name, ago(s.CreationTimestamp, e)}
}
