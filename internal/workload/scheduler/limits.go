package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// attachment is a CSI volume attached to a node; pods on a node share it.
type attachment struct{ driver, handle string }

// limits are the limits of nodes for the drivers of a pod's volumes. Source: plugin NodeVolumeLimits of kube-scheduler.
// Volumes of in-tree plugins, which Kubernetes counts for the CSI drivers that replace them, are not counted.
type limits struct {
	wanted []attachment
	// of is how many volumes a node may have, by its name and the driver. A node or driver without is not limited.
	of map[string]map[string]int
	// attached are the VolumeAttachments by node.
	attached map[string][]attachment
	// find returns the volume of a claim of a pod on a node; false if it is not counted.
	find func(namespace, claim string) (attachment, bool)
}

// limitsOf returns the limits that bear on a pod with claims; nil if no node has any.
func (s *scheduler) limitsOf(p *podInfo) *limits {
	nodes := cluster.CSINodes.ReadAll(s.index, "")
	if len(nodes) == 0 {
		return nil
	}
	l := &limits{of: map[string]map[string]int{}, attached: map[string][]attachment{}, find: s.attachmentOf}
	drivers := map[string]bool{}
	for _, claim := range p.claims {
		if a, ok := s.attachmentOf(p.namespace, claim); ok {
			l.wanted = append(l.wanted, a)
			drivers[a.driver] = true
		}
	}
	for _, n := range nodes {
		for _, d := range n.Spec.Drivers {
			if !drivers[d.Name] || d.Allocatable == nil || d.Allocatable.Count == nil {
				continue
			}
			if l.of[n.Name] == nil {
				l.of[n.Name] = map[string]int{}
			}
			l.of[n.Name][d.Name] = int(*d.Allocatable.Count)
		}
	}
	if len(l.of) == 0 {
		return nil
	}
	for _, a := range cluster.VolumeAttachments.ReadAll(s.index, "") {
		name := a.Spec.Source.PersistentVolumeName
		if l.of[a.Spec.NodeName] == nil || name == nil {
			continue
		}
		if v := cluster.PersistentVolumes.Read(s.index, "", *name); v != nil && v.Spec.CSI != nil {
			l.attached[a.Spec.NodeName] = append(l.attached[a.Spec.NodeName],
				attachment{a.Spec.Attacher, v.Spec.CSI.VolumeHandle})
		}
	}
	return l
}

// attachmentOf returns the volume of a claim. An unbound claim stands for a new volume of its class's provisioner.
func (s *scheduler) attachmentOf(namespace, name string) (attachment, bool) {
	claim := cluster.PersistentVolumeClaims.Read(s.index, namespace, name)
	if claim == nil {
		return attachment{}, false
	}
	if claim.Spec.VolumeName != "" {
		if v := cluster.PersistentVolumes.Read(s.index, "", claim.Spec.VolumeName); v != nil {
			return sourceOf(v)
		}
	}
	class := helper.GetPersistentVolumeClaimClass(claim)
	if class == "" {
		return attachment{}, false
	}
	c := cluster.StorageClasses.Read(s.index, "", class)
	if c == nil {
		return attachment{}, false
	}
	return attachment{c.Provisioner, "claim " + namespace + "/" + name}, true
}

func sourceOf(v *corev1.PersistentVolume) (attachment, bool) {
	if csi := v.Spec.CSI; csi != nil {
		return attachment{csi.Driver, csi.VolumeHandle}, true
	}
	return attachment{}, false
}

// exceeded reports whether a node would exceed the limit of a driver with the pod added.
func (l *limits) exceeded(i *nodeInfo) bool {
	if l == nil || l.of[i.node.Name] == nil {
		return false
	}
	used := map[attachment]bool{} // volumes that pods use
	for _, p := range i.pods {
		for _, claim := range p.claims {
			if a, ok := l.find(p.namespace, claim); ok {
				used[a] = true
			}
		}
	}
	counts := map[string]int{}
	for a := range used {
		counts[a.driver]++
	}
	for _, a := range l.attached[i.node.Name] {
		if !used[a] {
			counts[a.driver]++
		}
	}
	wanted := map[string]int{}
	for _, a := range l.wanted {
		if !used[a] {
			used[a] = true
			wanted[a.driver]++
		}
	}
	for driver, n := range wanted {
		if most, ok := l.of[i.node.Name][driver]; ok && counts[driver]+n > most {
			return true
		}
	}
	return false
}
