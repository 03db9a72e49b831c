package apps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// tolerate adds the tolerations of all daemon pods.
func tolerate(spec *corev1.PodSpec) {
	type taint struct {
		key    string
		effect corev1.TaintEffect
	}
	all := []taint{
		{corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute},
		{corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute},
		{corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule},
	}
	if spec.HostNetwork {
		all = append(all, taint{corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule})
	}
	for _, t := range all {
		want := corev1.Toleration{Key: t.key, Effect: t.effect, Operator: corev1.TolerationOpExists}
		at := slices.IndexFunc(spec.Tolerations, func(own corev1.Toleration) bool {
			return own.Key == want.Key && own.Effect == want.Effect && own.Operator == want.Operator && own.Value == ""
		})
		if at < 0 {
			spec.Tolerations = append(spec.Tolerations, want)
		} else {
			spec.Tolerations[at] = want
		}
	}
}

// shouldRun reports whether a pod of the set should run on a node, and whether a running one may stay.
func shouldRun(set *appsv1.DaemonSet, node *corev1.Node) (run, stay bool) {
	spec := &corev1.PodSpec{ // only these fields count; a copy of all would cost as much as the template, for each node
		NodeName: set.Spec.Template.Spec.NodeName, NodeSelector: set.Spec.Template.Spec.NodeSelector,
		Affinity: set.Spec.Template.Spec.Affinity, HostNetwork: set.Spec.Template.Spec.HostNetwork,
		Tolerations: slices.Clone(set.Spec.Template.Spec.Tolerations),
	}
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false, false
	}
	spec.NodeName = node.Name
	tolerate(spec)
	fits, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(node)
	if err != nil || !fits {
		return false, false
	}
	run, stay = true, true
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if slices.ContainsFunc(spec.Tolerations,
			func(t corev1.Toleration) bool { return cluster.Tolerates(&t, taint) }) {
			continue
		}
		run = false
		stay = stay && taint.Effect != corev1.TaintEffectNoExecute
	}
	return run, stay
}

// daemonPod returns the pod of a set for a node: the scheduler binds it, to no other.
func daemonPod(set *appsv1.DaemonSet, ref metav1.OwnerReference, hash, node string) *corev1.Pod {
	p := replica.FromTemplate(&set.Spec.Template, set, ref)
	tolerate(&p.Spec)
	if generation := templateGeneration(set); generation != "" {
		p.Labels = with(p.Labels, generationLabel, generation)
	}
	p.Labels = with(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, hash)
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}
	return p
}

// generationLabel is the label of pods with the generation of their template.
const generationLabel = "pod-template-generation"

// templateGeneration returns the generation of a set's template, as extensions/v1beta1 counted it.
func templateGeneration(set *appsv1.DaemonSet) string {
	return set.Annotations[appsv1.DeprecatedTemplateGeneration]
}

// isUpdated reports whether a pod is of the set's template.
func (s *spread) isUpdated(p *corev1.Pod) bool {
	generation := templateGeneration(s.set)
	return p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash ||
		generation != "" && p.Labels[generationLabel] == generation
}

// targetNode returns the node that a pod runs on or is meant for.
func targetNode(p *corev1.Pod) (string, bool) {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName, true
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "", false
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn {
				return slices.Concat(f.Values, []string{""})[0], len(f.Values) == 1
			}
		}
	}
	return "", false
}

// byPlacement sorts assigned pods first, then by age, the oldest first.
func byPlacement(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		placed := 0
		if (a.Spec.NodeName != "") != (b.Spec.NodeName != "") {
			placed = 1
			if a.Spec.NodeName != "" {
				placed = -1
			}
		}
		return cmp.Or(placed, a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// limits returns by how many pods an update may exceed the nodes, and how many nodes may be without.
func limits(set *appsv1.DaemonSet, nodes int) (surge, unavailable int) {
	u := set.Spec.UpdateStrategy.RollingUpdate
	if u == nil {
		return 0, 0
	}
	resolve := func(v *intstr.IntOrString) int {
		if v == nil {
			return 0
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, nodes, true)
		if err != nil { // validation rejects it
			return 0
		}
		return n
	}
	surge, unavailable = resolve(u.MaxSurge), resolve(u.MaxUnavailable)
	if nodes > 0 && surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// surges reports whether a node may have two pods during an update.
func surges(set *appsv1.DaemonSet) bool {
	if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return false
	}
	surge, _ := limits(set, 1)
	return surge > 0
}

// pair returns the pods of a node with the current template and with an older one; ok is false if there are more.
func (s *spread) pair(pods []*corev1.Pod) (newer, older *corev1.Pod, ok bool) {
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		pods := &older
		if s.isUpdated(p) {
			pods = &newer
		}
		if *pods != nil {
			return nil, nil, false
		}
		*pods = p
	}
	return newer, older, true
}

// roll returns the nodes that get a new pod beside the old one, and the old pods to delete.
func (s *spread) roll() (lacking []string, surplus []*corev1.Pod) {
	desired := 0
	nodes := map[string]*corev1.Node{}
	for _, node := range s.nodes {
		nodes[node.Name] = node
		if run, _ := shouldRun(s.set, node); run {
			desired++
			if _, there := s.pods[node.Name]; !there {
				s.pods[node.Name] = nil
			}
		}
	}
	surge, unavailable := limits(s.set, desired)
	if surge > 0 {
		return s.rollSurging(nodes, surge, desired)
	}
	var candidates []*corev1.Pod
	missing := 0
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		newer, older, ok := s.pair(s.pods[name])
		switch {
		case !ok, (newer == nil) == (older == nil):
			missing++
		case newer != nil:
			if !s.available(newer) {
				missing++
			}
		case !s.available(older):
			surplus = append(surplus, older)
			missing++
		case missing < unavailable:
			candidates = append(candidates, older)
		}
	}
	return nil, append(surplus, candidates[:min(len(candidates), max(0, unavailable-missing))]...)
}

func (s *spread) available(p *corev1.Pod) bool {
	return replica.IsAvailable(p, s.set.Spec.MinReadySeconds, s.now)
}

// rollSurging is roll for a set that creates the new pod of a node first.
func (s *spread) rollSurging(
	nodes map[string]*corev1.Node, surge, desired int,
) (lacking []string, surplus []*corev1.Pod) {
	var candidates []string
	var misplaced []*corev1.Pod
	surging, available := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		newer, older, ok := s.pair(s.pods[name])
		if !ok {
			surging++
			continue
		}
		if p := cmp.Or(older, newer); p != nil && s.available(p) {
			available++
		}
		run := false
		if node := nodes[name]; node != nil {
			run, _ = shouldRun(s.set, node)
		}
		switch {
		case older == nil:
		case newer != nil && s.available(newer):
			surplus = append(surplus, older)
		case newer != nil:
			surging++
		case !s.available(older) && !run:
			surplus = append(surplus, older)
		case !s.available(older):
			lacking = append(lacking, name)
		case !run:
			misplaced = append(misplaced, older)
		case surging < surge:
			candidates = append(candidates, name)
		}
	}
	surplus = append(surplus, misplaced[:min(len(misplaced), max(0, available-desired))]...)
	return append(lacking, candidates[:min(len(candidates), max(0, surge-surging))]...), surplus
}

// pauses are the exponential back-offs before the failed pods of a set on a node are deleted.
type pauses struct {
	mu sync.Mutex
	of map[string]pause
}

type pause struct {
	length time.Duration
	since  time.Time
}

// longestPause is the longest pause.
const longestPause = 15 * time.Minute

// left returns how long the failed pod of a node is to stay. If it may go, the next pause begins.
func (p *pauses) left(set *appsv1.DaemonSet, node string, now time.Time) time.Duration {
	key := fmt.Sprintf("%s/%d/%s", set.UID, set.Status.ObservedGeneration, node)
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.of[key]
	if left := last.since.Add(last.length).Sub(now); known && left > 0 {
		return left
	}
	next := pause{length: time.Second, since: now}
	if known && now.Sub(last.since) < 2*longestPause {
		next.length = min(2*last.length, longestPause)
	}
	if p.of == nil {
		p.of = map[string]pause{}
	}
	p.of[key] = next
	return 0
}
