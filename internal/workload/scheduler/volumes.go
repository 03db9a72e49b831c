package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// volumes are the volumes of a pod that is to be scheduled.
type volumes struct {
	bound []*corev1.PersistentVolume // nil elements are missing volumes
	// open are the claims to be bound once the pod has a node, the smallest first; classes are their classes.
	open    []*corev1.PersistentVolumeClaim
	classes map[string]*storagev1.StorageClass
	all     []*corev1.PersistentVolume // only if there are open claims
	single  []string                   // ReadWriteOncePod claims
	limits  *limits                    // nil if there are none
}

// volumesOf returns the volumes of a pod, or why the pod fits no node because of them.
func (s *scheduler) volumesOf(p *podInfo) (*volumes, string) {
	if len(p.claims) == 0 {
		return nil, ""
	}
	claims := make([]*corev1.PersistentVolumeClaim, len(p.claims))
	for i, name := range p.claims { // kube-scheduler first checks that all claims exist
		claims[i] = cluster.PersistentVolumeClaims.Get(s.Cluster, p.namespace, name)
		if claims[i] == nil && !slices.Contains(p.ephemeral, name) {
			return nil, `persistentvolumeclaim "` + name + `" not found`
		}
	}
	v, immediate, lost := &volumes{classes: map[string]*storagev1.StorageClass{}}, false, ""
	for i, name := range p.claims {
		claim := claims[i]
		own := slices.Contains(p.ephemeral, name)
		if claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			v.single = append(v.single, name)
		}
		switch {
		case claim == nil:
			return nil, `waiting for ephemeral volume controller to create the persistentvolumeclaim "` + name + `"`
		case claim.Status.Phase == corev1.ClaimLost:
			return nil, `persistentvolumeclaim "` + name + `" bound to non-existent persistentvolume "` +
				claim.Spec.VolumeName + `"`
		case claim.DeletionTimestamp != nil:
			return nil, `persistentvolumeclaim "` + name + `" is being deleted`
		case own && !cluster.IsFor(claim, types.UID(p.uid)):
			return nil, "PVC " + p.namespace + "/" + name + " was not created for pod " + p.key() +
				" (pod is not owner)"
		case isBound(claim):
			has := cluster.PersistentVolumes.Get(s.Cluster, "", claim.Spec.VolumeName)
			if has == nil && !own && lost == "" {
				lost = claim.Spec.VolumeName
			}
			v.bound = append(v.bound, has)
		case claim.Spec.VolumeName == "" && s.waitsForPod(claim, v.classes):
			v.open = append(v.open, claim)
		default:
			immediate = true
		}
	}
	if immediate {
		return nil, "pod has unbound immediate PersistentVolumeClaims"
	}
	if lost != "" { // the last plugin of kube-scheduler reports it, without the pod's own claims
		return nil, `persistentvolume "` + lost + `" not found`
	}
	if len(v.open) > 0 {
		v.all = s.allVolumes()
		slices.SortStableFunc(v.open, func(a, b *corev1.PersistentVolumeClaim) int {
			size := a.Spec.Resources.Requests[corev1.ResourceStorage]
			return quantity.Cmp(size, b.Spec.Resources.Requests[corev1.ResourceStorage])
		})
	}
	v.limits = s.limitsOf(p)
	return v, ""
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, helper.AnnBindCompleted)
}

// waitsForPod reports whether a claim's class binds claims only once pods use them, and records the class.
func (s *scheduler) waitsForPod(claim *corev1.PersistentVolumeClaim, classes map[string]*storagev1.StorageClass) bool {
	name := helper.GetPersistentVolumeClaimClass(claim)
	if name == "" {
		return false
	}
	c := cluster.StorageClasses.Get(s.Cluster, "", name)
	classes[name] = c
	return cluster.WaitsForPod(c)
}

func (s *scheduler) allVolumes() (all []*corev1.PersistentVolume) {
	s.View.Collection(cluster.PersistentVolumes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if v := cluster.PersistentVolumes.Decode(s.Cluster, e); v != nil {
			all = append(all, v)
		}
		return true
	})
	return all
}

// Why a node is out, in kube-scheduler's words.
const (
	elsewhere  = "node(s) didn't match PersistentVolume's node affinity"
	noneToBind = "node(s) didn't find available persistent volumes to bind"
	gone       = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	otherZone  = "node(s) had no available volume zone"
	exclusive  = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use " +
		"by another pod"
	tooMany = "node(s) exceed max volume count"
)

// isTaken reports whether another pod on a node uses a ReadWriteOncePod claim of the pod.
func (m *model) isTaken(p *podInfo) bool {
	if p.volumes == nil || len(p.volumes.single) == 0 {
		return false
	}
	for _, other := range m.pods {
		if other.namespace == p.namespace && other.key() != p.key() &&
			slices.ContainsFunc(other.claims, func(c string) bool { return slices.Contains(p.volumes.single, c) }) {
			return true
		}
	}
	return false
}

// zoneLabels are the labels that place volumes and nodes.
var zoneLabels = []string{
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion,
}

// newLabels maps deprecated labels to their replacements.
var newLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// inZone reports whether a node matches the zone labels of a volume. A node without zone labels matches every volume. A
// label of a volume may list several zones, separated by two underscores.
func inZone(v *corev1.PersistentVolume, n *corev1.Node) bool {
	isPlaced := slices.ContainsFunc(zoneLabels, func(key string) bool { _, ok := n.Labels[key]; return ok })
	for _, key := range zoneLabels {
		want, ok := v.Labels[key]
		if !ok || !isPlaced {
			continue
		}
		has, ok := n.Labels[key]
		if !ok {
			has, ok = n.Labels[newLabels[key]]
		}
		if !ok || !slices.Contains(strings.Split(want, "__"), has) {
			return false
		}
	}
	return true
}

// exceed reports whether the volumes would exceed the driver limits of a node.
func (v *volumes) exceed(i *nodeInfo) bool { return v != nil && v.limits.exceeded(i) }

// check returns why the pod's volumes exclude a node: the first conflict of a bound volume, and that open claims cannot
// be bound. v may be nil.
func (v *volumes) check(n *corev1.Node) (reasons []string) {
	if v == nil {
		return nil
	}
	for _, has := range v.bound {
		if has == nil {
			reasons = append(reasons, gone)
			break
		}
		if helper.CheckNodeAffinity(has, n.Labels) != nil {
			reasons = append(reasons, elsewhere)
			break
		}
	}
	if _, ok := v.plan(n); !ok {
		reasons = append(reasons, noneToBind)
	}
	if len(reasons) > 0 {
		return reasons
	}
	if slices.ContainsFunc(v.bound, func(has *corev1.PersistentVolume) bool { return !inZone(has, n) }) {
		return []string{otherZone}
	}
	return nil
}

// plan assigns a volume on the node to each open claim, or nil if a provisioner has to create it; false if a claim has
// no volume there.
func (v *volumes) plan(n *corev1.Node) (map[string]*corev1.PersistentVolume, bool) {
	out, taken := map[string]*corev1.PersistentVolume{}, map[string]*corev1.PersistentVolume{}
	for _, claim := range v.open {
		if selected, ok := claim.Annotations[helper.AnnSelectedNode]; ok {
			if selected != n.Name || !v.provides(claim, n) {
				return nil, false
			}
			out[claim.Name] = nil
			continue
		}
		found, err := helper.FindMatchingVolume(claim, v.all, n, taken, true, true)
		if err != nil {
			return nil, false
		}
		if found == nil && !v.provides(claim, n) {
			return nil, false
		}
		if out[claim.Name] = found; found != nil {
			taken[found.Name] = found
		}
	}
	return out, true
}

// provides reports whether the provisioner of a claim's class can create volumes for a node.
func (v *volumes) provides(claim *corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	c := v.classes[helper.GetPersistentVolumeClaimClass(claim)]
	return c != nil && c.Provisioner != "" && c.Provisioner != helper.NotSupportedProvisioner &&
		matchesTopology(c.AllowedTopologies, n.Labels)
}

// matchesTopology reports whether the labels of a node match one of the terms; no terms match every node.
func matchesTopology(terms []corev1.TopologySelectorTerm, of map[string]string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return len(t.MatchLabelExpressions) > 0 && !slices.ContainsFunc(t.MatchLabelExpressions,
			func(e corev1.TopologySelectorLabelRequirement) bool { return !slices.Contains(e.Values, of[e.Key]) })
	})
}

// reserve has the open claims of a pod bound on the node that was chosen for it.
func (s *scheduler) reserve(ctx context.Context, v *volumes, node *corev1.Node) error {
	plan, ok := v.plan(node)
	if !ok {
		return fmt.Errorf("volumes of node %s are taken", node.Name) // they were free when the node was chosen
	}
	for _, claim := range v.open {
		if found := plan[claim.Name]; found != nil {
			next, dirty, err := cluster.KeepFor(found, claim)
			if err == nil && dirty {
				_, err = cluster.PersistentVolumes.Replace(ctx, s.Cluster, next)
			}
			if err != nil {
				return err
			}
			continue
		}
		if claim.Annotations[helper.AnnSelectedNode] == node.Name {
			continue
		}
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, helper.AnnSelectedNode, node.Name)
		if _, err := cluster.PersistentVolumeClaims.Replace(ctx, s.Cluster, claim); err != nil {
			return err
		}
	}
	return nil
}

// promise is the node of a pod that waits for its claims to be bound there, with a deadline.
type promise struct {
	uid, node string
	until     time.Time
}

// bindingTime is how long a pod waits for its claims to be bound, kube-scheduler's bindTimeoutSeconds.
const bindingTime = 10 * time.Minute

// satisfied reports the progress of a promise: whether all claims are bound, and whether one cannot be bound any more.
func (v *volumes) satisfied(node string) (all, broken bool) {
	for _, claim := range v.open {
		if selected, ok := claim.Annotations[helper.AnnSelectedNode]; ok && selected != node {
			return false, true
		} else if !ok && !slices.ContainsFunc(v.all, func(has *corev1.PersistentVolume) bool {
			return helper.IsVolumeBoundToClaim(has, claim)
		}) {
			return false, true
		}
	}
	return len(v.open) == 0, slices.Contains(v.bound, nil)
}
