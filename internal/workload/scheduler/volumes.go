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

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// volumes are those of a pod that is to be scheduled.
type volumes struct {
	bound []*corev1.PersistentVolume // nil is one that is not there
	// open are claims that are bound when the pod has a node, the smallest first, and classes theirs.
	open    []*corev1.PersistentVolumeClaim
	classes map[string]*storagev1.StorageClass
	all     []*corev1.PersistentVolume // if there are open claims
	single  []string                   // the claims that only one pod may have
	limits  *limits                    // nil if there are none
}

// volumesOf returns the volumes of a pod, or why it cannot have them wherever it is.
func (s *scheduler) volumesOf(p *podInfo) (*volumes, string) {
	if len(p.claims) == 0 {
		return nil, ""
	}
	claims := make([]*corev1.PersistentVolumeClaim, len(p.claims))
	for i, name := range p.claims { // kube-scheduler's plugin that looks for them all comes first
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
	if lost != "" { // the last of kube-scheduler's plugins says so, which does not look at a pod's own claims
		return nil, `persistentvolume "` + lost + `" not found`
	}
	if len(v.open) > 0 {
		v.all = s.allVolumes()
		slices.SortStableFunc(v.open, func(a, b *corev1.PersistentVolumeClaim) int {
			size := a.Spec.Resources.Requests[corev1.ResourceStorage]
			return size.Cmp(b.Spec.Resources.Requests[corev1.ResourceStorage])
		})
	}
	v.limits = s.limitsOf(p)
	return v, ""
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, helper.AnnBindCompleted)
}

// waitsForPod reports whether a claim's class binds claims when pods want them, and notes the class.
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

// isTaken reports whether another pod on a node has a claim of the pod that only one may have.
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

// zoneLabels say of volumes and nodes where they are.
var zoneLabels = []string{
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion,
}

// newLabels are those that have come in the place of others.
var newLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// inZone reports whether a node is where a volume's labels say that it is. A node without any such label is anywhere;
// a volume may be in several zones, with two underscores between them.
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

// exceed reports whether a node can have no more volumes of their drivers.
func (v *volumes) exceed(i *nodeInfo) bool { return v != nil && v.limits.exceeded(i) }

// check returns why the pod's volumes keep it off a node: of those that are bound the first that does, and that others
// cannot be. There may be no volumes at all.
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

// plan returns the volume of each open claim on a node, nil for one that a provisioner has to make there; false if
// there is none for one of them.
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

// provides reports whether the provisioner of a claim's class makes volumes for a node.
func (v *volumes) provides(claim *corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	c := v.classes[helper.GetPersistentVolumeClaimClass(claim)]
	return c != nil && c.Provisioner != "" && c.Provisioner != helper.NotSupportedProvisioner &&
		matchesTopology(c.AllowedTopologies, n.Labels)
}

// matchesTopology reports whether labels of a node are among what one of the terms allows; none allow all.
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
		return fmt.Errorf("volumes of node %s are taken", node.Name) // it was possible when the node was chosen
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

// promise is the node of a pod that waits until its claims are bound there, and until when.
type promise struct {
	uid, node string
	until     time.Time
}

// bindingTime is how long a pod waits for its claims to be bound, kube-scheduler's bindTimeoutSeconds.
const bindingTime = 10 * time.Minute

// kept reports how far the volumes of a promise are: whether all are bound, and whether one cannot be bound any more.
func (v *volumes) kept(node string) (all, broken bool) {
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
