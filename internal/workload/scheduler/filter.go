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

// decision is the outcome of scheduling a pod.
type decision struct {
	node string // "" for none
	// because is the reason that no node was found.
	because string
	// victims are pods to delete, from the node nominated, to make room for the pod.
	victims   []*podInfo
	nominated string
	// waits keeps the pod's nominated node, if it has one: its victims are still terminating.
	waits bool
}

// preempting precedes the reason why preemption does not help.
const preempting = " preemption: "

// decide finds a node for a pod. labelsOf returns the labels of a namespace.
func (m *model) decide(p *podInfo, labelsOf func(namespace string) map[string]string) decision {
	if m.count() == 0 {
		return decision{because: "no nodes available to schedule pods"}
	}
	r := newRound(m, p, labelsOf)
	if n := m.nodes[p.nominee]; n != nil && n.node != nil { // pods were preempted there for it
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
		d.because += preempting + why
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
	named    []string // the nodes that the pod selects by name, as DaemonSet pods do; nil means any
	affinity *affinity
	spread   []*constraint
	taken    bool // another pod uses a ReadWriteOncePod claim of the pod
	labelsOf func(namespace string) map[string]string
	guards   []budget // the disruption budgets, once preemption has read them
	// dependsOnPods is set if the removal of pods can change the state of the round.
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

// failure explains that there is no node, in the form of kube-scheduler's FitError.
type failure struct {
	nodes   int
	first   string         // why no node was checked
	reasons map[string]int // number of excluded nodes, by reason
	helped  []string       // nodes that the removal of pods may make feasible
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

// enough is the number of feasible nodes to score. A search begins after the nodes of the last one, so that all nodes
// get their turn.
const enough = 100

// feasible returns nodes that fit the pod and, if there are none, the reasons.
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

// Reasons that exclude a node, in the words of kube-scheduler. Kubelets use the same ones (refusal.go).
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

// namesOf returns the node names that the terms of a required node affinity select; nil if a term selects by other
// fields.
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

// untolerated returns a taint that keeps the pod off a node, or nil if there is none.
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

// lacks returns the resources that a node has too little of, and whether it would have too little even without any pod.
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

// promised is the amount of a resource that is reserved on a node for more important nominated pods.
func (r *round) promised(node string, name corev1.ResourceName) (sum int64) {
	for _, p := range r.nominated {
		if p.node == node && p.priority >= r.pod.priority && p.key() != r.pod.key() {
			sum += p.requests[name]
		}
	}
	return sum
}
