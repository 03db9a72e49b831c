package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// decision is what becomes of a pod.
type decision struct {
	node string // "" for none
	// because says why there is none.
	because string
	// victims are pods that are to go for it, from the node nominated.
	victims   []*podInfo
	nominated string
	// waits says that the node for which others have gone, if there is one, is still to be the pod's.
	waits bool
}

// noClaims comes before why preemption does not help: kube-scheduler's plugin DynamicResources says first that it has
// nothing to take from other pods either.
const noClaims = " no new claims to deallocate, preemption: "

// decide finds a node for a pod. labelsOf returns the labels of a namespace.
func (m *model) decide(p *podInfo, labelsOf func(namespace string) map[string]string) decision {
	if m.count() == 0 {
		return decision{because: "no nodes available to schedule pods"}
	}
	r := newRound(m, p, labelsOf)
	if n := m.nodes[p.nominee]; n != nil && n.node != nil { // others have gone from there for it
		if reasons, _ := r.check(n); len(reasons) == 0 {
			return decision{node: p.nominee}
		}
	}
	found, failed := r.feasible()
	if len(found) > 0 {
		return decision{node: r.best(found)}
	}
	d := decision{because: failed.String()}
	best, why, waits := r.preempt(failed)
	if best == nil {
		d.because += noClaims + why
		d.waits = waits
		return d
	}
	d.nominated, d.victims = best.node, best.victims
	return d
}

// round is the search for a node for one pod.
type round struct {
	*model
	pod      *podInfo
	required nodeaffinity.RequiredNodeAffinity
	named    []string // the nodes of which the pod wants one by its name, as a DaemonSet's does; nil is any
	affinity *affinity
	spread   []*constraint
	taken    bool // another pod has a claim that only one may have
	labelsOf func(namespace string) map[string]string
	// dependsOnPods is whether what the round knows changes when pods that were there at its beginning go.
	dependsOnPods bool
}

func newRound(m *model, p *podInfo, labelsOf func(namespace string) map[string]string) *round {
	r := &round{model: m, pod: p, labelsOf: labelsOf}
	r.required = nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *p.spec})
	r.named = namesOf(p.spec)
	r.affinity = newAffinity(m, p, labelsOf)
	r.spread = newConstraints(r)
	r.taken = m.isTaken(p)
	r.dependsOnPods = len(p.near)+len(p.away)+len(r.spread)+len(r.repelling) > 0 || r.taken
	return r
}

// failure is why there is no node, as kube-scheduler's FitError says it.
type failure struct {
	nodes   int
	first   string         // why no node was looked at
	reasons map[string]int // how many nodes are out, by reason
	helped  []string       // nodes that are out for a reason that the end of other pods may mend
}

func (f failure) String() string {
	text := fmt.Sprintf("0/%d nodes are available:", f.nodes)
	if f.first != "" {
		return text + " " + f.first + "."
	}
	var parts []string
	for reason, n := range f.reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	if len(parts) > 0 {
		slices.Sort(parts)
		text += " " + strings.Join(parts, ", ") + "."
	}
	return text
}

// enough is how many nodes that a pod may have are compared. Of more nodes those after the ones that were looked at
// last are looked at first, so that all have their turn.
const enough = 100

// feasible returns nodes that the pod may have, and if there are none, why all are out.
func (r *round) feasible() (found []*nodeInfo, failed failure) {
	failed = failure{nodes: r.count(), reasons: map[string]int{}}
	nodes := r.existing()
	from := 0
	if len(nodes) > enough {
		from = r.from % len(nodes)
	}
	for at := range nodes {
		i := nodes[(from+at)%len(nodes)]
		if len(found) == enough {
			break
		}
		r.from = from + at + 1
		reasons, mendable := r.check(i)
		if len(reasons) == 0 {
			found = append(found, i)
			continue
		}
		for _, reason := range reasons {
			failed.reasons[reason]++
		}
		if mendable {
			failed.helped = append(failed.helped, i.node.Name)
		}
	}
	return found, failed
}

// What a node may be out for, in kube-scheduler's words, which are a kubelet's too (refusal.go).
const (
	notNamed  = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	otherNode = "node(s) didn't match Pod's node affinity/selector"
	noPorts   = "node(s) didn't have free ports for the requested pod ports"
)

// check returns why a node is out, and whether the end of pods on it may mend that. The first filter that fails
// decides, in kube-scheduler's order.
func (r *round) check(i *nodeInfo) (reasons []string, mendable bool) {
	n, spec := i.node, r.pod.spec
	if r.named != nil && !slices.Contains(r.named, n.Name) {
		return []string{notNamed}, false
	}
	if n.Spec.Unschedulable && !tolerates(spec.Tolerations, &unschedulableTaint) {
		return []string{"node(s) were unschedulable"}, false
	}
	if r.untolerated(n) != nil {
		return []string{"node(s) had untolerated taint(s)"}, false
	}
	if ok, err := r.required.Match(n); !ok || err != nil {
		return []string{otherNode}, false
	}
	if r.portTaken(i) {
		return []string{noPorts}, true
	}
	if short, never := r.lacks(i); len(short) > 0 {
		return short, !never
	}
	if r.taken {
		return []string{exclusive}, true
	}
	if r.pod.volumes.exceed(i) {
		return []string{tooMany}, true
	}
	if reasons := r.pod.volumes.check(n); len(reasons) > 0 {
		return reasons, false
	}
	if reason, missing := r.overSpread(i); reason != "" {
		return []string{reason}, !missing
	}
	return r.affinity.check(n)
}

// namesOf returns the names of which each term of a required node affinity wants one, nil if a term wants none.
func namesOf(spec *corev1.PodSpec) (names []string) {
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		at := slices.IndexFunc(t.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
			return f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 {
			return nil
		}
		names = append(names, t.MatchFields[at].Values...)
	}
	return names
}

// untolerated returns a taint that keeps the pod off a node, nil if there is none.
func (r *round) untolerated(n *corev1.Node) *corev1.Taint {
	for t := range n.Spec.Taints {
		if taint := &n.Spec.Taints[t]; taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!tolerates(r.pod.spec.Tolerations, taint) {
			return taint
		}
	}
	return nil
}

var unschedulableTaint = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return cluster.Tolerates(&t, taint) })
}

func (r *round) portTaken(i *nodeInfo) bool {
	if len(r.pod.ports) == 0 {
		return false
	}
	for _, other := range i.pods {
		for _, theirs := range other.ports {
			if slices.ContainsFunc(r.pod.ports, theirs.conflicts) {
				return true
			}
		}
	}
	return false
}

// lacks returns what a node has too little of, and whether it would have too little without any pod.
func (r *round) lacks(i *nodeInfo) (reasons []string, never bool) {
	for name, wanted := range r.pod.requests {
		if wanted == 0 || wanted <= i.free[name]-r.promised(i.node.Name, name) {
			continue
		}
		if name == corev1.ResourcePods {
			reasons = append(reasons, "Too many pods")
		} else {
			reasons = append(reasons, "Insufficient "+string(name))
		}
		never = never || wanted > i.all[name]
	}
	return reasons, never
}

// promised is how much of a node is for more important pods that wait until others are gone.
func (r *round) promised(node string, name corev1.ResourceName) (sum int64) {
	for _, p := range r.nominated {
		if p.node == node && p.priority >= r.pod.priority && p.key() != r.pod.key() {
			sum += p.requests[name]
		}
	}
	return sum
}
