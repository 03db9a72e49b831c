package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// since has a pod have started so many seconds after the first.
func since(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: time.Unix(1e9+seconds, 0)} }
}

func named(team string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["team"] = team }
}

// guarding returns budgets that allow so many disruptions of pods with the label team.
func guarding(team string, left int32, evicted ...string) func() []budget {
	gone := map[string]metav1.Time{}
	for _, name := range evicted {
		gone[name] = metav1.Time{}
	}
	return func() []budget {
		return []budget{{
			namespace: "default", selector: labels.SelectorFromSet(labels.Set{"team": team}), left: left,
			evicted: gone,
		}}
	}
}

// TestPreemption checks that the node with the least harmful victims is chosen, by Kubernetes' criteria in their order.
func TestPreemption(t *testing.T) {
	t.Parallel()
	type pods = map[string][]*podInfo
	full := func(name string, of int32, more ...func(*corev1.Pod)) *podInfo {
		return pod(name, "4", append(more, priority(of))...)
	}
	for name, c := range map[string]struct {
		there   pods
		budgets func() []budget
		pod     *podInfo
		want    string // "node: victims", or the preemption message
	}{
		"fewest violations": {
			pods{"a": {full("x1", 1, named("db"))}, "b": {full("x2", 5)}, "c": {full("x3", 6)}}, guarding("db", 0),
			pod("p", "1", priority(10)), "b: x2"},
		"a budget with room": {
			pods{"a": {full("x1", 1, named("db"))}, "b": {full("x2", 5)}, "c": {full("x3", 6)}}, guarding("db", 1),
			pod("p", "1", priority(10)), "a: x1"},
		"an end that is counted already": {
			pods{"a": {full("x1", 1, named("db"))}, "b": {full("x2", 5)}, "c": {full("x3", 6)}},
			guarding("db", 0, "x1"), pod("p", "1", priority(10)), "a: x1"},
		"a guarded pod stays beside another": {
			pods{"a": {pod("x1", "2", priority(1), named("db")), pod("x2", "2", priority(3))},
				"b": {full("x3", 20)}, "c": {full("x4", 20)}}, guarding("db", 0),
			pod("p", "2", priority(10)), "a: x2"},
		"lowest of the highest": {pods{"a": {full("x1", 5)}, "b": {full("x2", 3)}, "c": {full("x3", 4)}}, nil,
			pod("p", "1", priority(10)), "b: x2"},
		"lowest sum": {pods{"a": {pod("x1", "2", priority(5)), pod("x2", "2", priority(4))},
			"b": {pod("x3", "2", priority(5)), pod("x4", "2", priority(3))}, "c": {full("x5", 20)}}, nil,
			pod("p", "4", priority(10)), "b: x3 x4"},
		"fewest of negative priority": {pods{"a": {pod("x1", "2", priority(-5)), pod("x2", "2", priority(-5))},
			"b": {full("x3", -5)}, "c": {full("x5", 20)}}, nil, pod("p", "4", priority(10)), "b: x3"},
		"latest start": {pods{"a": {full("x1", 5, since(1))}, "b": {full("x2", 5, since(9))},
			"c": {full("x3", 5, since(5))}}, nil, pod("p", "1", priority(10)), "b: x2"},
		"of equals the youngest": {pods{
			"a": {pod("x1", "2", priority(5), since(1)), pod("x2", "2", priority(5), since(9))},
			"b": {full("x3", 20)}, "c": {full("x4", 20)}}, nil, pod("p", "2", priority(10)), "a: x2"},
		"never": {pods{"a": {full("x1", 1)}, "b": {full("x2", 1)}, "c": {full("x3", 1)}}, nil,
			pod("p", "1", priority(10), func(p *corev1.Pod) {
				never := corev1.PreemptNever
				p.Spec.PreemptionPolicy = &never
			}), "not eligible due to preemptionPolicy=Never."},
		"not enough": {pods{"a": {pod("x1", "1", priority(1)), pod("x2", "3", priority(20))},
			"b": {full("x3", 20)}, "c": {full("x4", 20)}}, nil, pod("p", "2", priority(10)),
			"0/3 nodes are available: 1 Insufficient cpu, 2 No preemption victims found for incoming pod."},
		"who keeps others off": {pods{"a": {pod("x1", "0", priority(1), away("p", "host"))},
			"b": {pod("x2", "0", priority(20), away("p", "host"))}, "c": {full("x3", 20)}}, nil,
			pod("p", "1", priority(10)), "a: x1"},
		"from whom it keeps off": {pods{"a": {pod("x1", "0", priority(1)), pod("y1", "0", priority(1))},
			"b": {full("x2", 20)}, "c": {full("x3", 20)}}, nil,
			pod("p", "1", priority(10), away("x", "host")), "a: x1"},
		"who is spread": {pods{"a": {pod("p1", "0", priority(1))}, "b": {full("x2", 20)}, "c": {full("x3", 20)}}, nil,
			pod("p", "1", priority(10), spread("p", "host")), "a: p1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := cluster3()
			for node, list := range c.there {
				for _, p := range list {
					m.add(p, node)
				}
			}
			m.budgets = c.budgets
			d := m.decide(c.pod, func(string) map[string]string { return nil })
			var victims []string
			for _, p := range d.victims {
				victims = append(victims, p.name)
			}
			got := d.nominated + ": " + strings.Join(victims, " ")
			if _, why, ok := strings.Cut(d.because, " preemption: "); ok {
				got = why
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s\n(%s)", got, c.want, d.because)
			}
			for node, list := range c.there {
				if len(m.nodes[node].pods) != len(list) {
					t.Errorf("%s has %d pods afterwards", node, len(m.nodes[node].pods))
				}
			}
		})
	}
}

// TestPreemptionIsBounded has 300 nodes with a victim each: preemption compares a hundred of them.
func TestPreemptionIsBounded(t *testing.T) {
	t.Parallel()
	m := newModel()
	for i := range 300 {
		name := fmt.Sprintf("n%03d", i)
		m.setNode(name, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("3"),
			}},
		})
		m.add(pod("x"+name, "4", priority(1)), name)
	}
	looked := 0
	m.refresh = func(*podInfo) { looked++ }
	d := m.decide(pod("p", "1", priority(10)), func(string) map[string]string { return nil })
	if d.nominated == "" || len(d.victims) != 1 || looked != candidateLimit(300) {
		t.Errorf("nominated %q with %d victims after %d nodes: %s", d.nominated, len(d.victims), looked, d.because)
	}
}

// TestNominatedNode checks that a pod goes to its nominated node, and waits for its victims without preempting more
// pods.
func TestNominatedNode(t *testing.T) {
	t.Parallel()
	none := func(string) map[string]string { return nil }
	m := cluster3()
	p := pod("p", "3", priority(10), func(p *corev1.Pod) { p.Status.NominatedNodeName = "c" })
	if d := m.decide(p, none); d.node != "c" {
		t.Errorf("it goes to %q", d.node)
	}
	going := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		}}
	}
	m.add(pod("x1", "4", priority(1)), "a")
	m.add(pod("x2", "4", priority(1)), "b")
	m.add(pod("x3", "4", priority(1), going), "c")
	d := m.decide(p, none)
	if !d.waits || d.nominated != "" || len(d.victims) > 0 ||
		!strings.HasSuffix(d.because, "not eligible due to a terminating pod on the nominated node.") {
		t.Errorf("it does not wait: %+v", d)
	}
	m.nodes["c"].node.Spec.Unschedulable = true // then it tries other nodes
	if d := m.decide(p, none); d.nominated == "" || d.nominated == "c" {
		t.Errorf("it waits for %q: %s", d.nominated, d.because)
	}
}

// TestExclusiveClaims checks that a ReadWriteOncePod claim in use excludes all nodes for another pod, until its user is
// preempted.
func TestExclusiveClaims(t *testing.T) {
	t.Parallel()
	m := cluster3()
	has := pod("x", "1", priority(1), func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	})
	m.add(has, "b")
	p := pod("p", "1", priority(1))
	p.claims, p.volumes = []string{"data"}, &volumes{single: []string{"data"}}
	none := func(string) map[string]string { return nil }
	if d := m.decide(p, none); d.node != "" || !strings.HasPrefix(d.because, "0/3 nodes are available: 3 "+exclusive) {
		t.Errorf("%+v", d)
	}
	p.priority = 10
	if d := m.decide(p, none); d.nominated != "b" || len(d.victims) != 1 || d.victims[0] != has {
		t.Errorf("%+v", d)
	}
}

// TestVolumeZones checks that a volume excludes nodes of other zones, but not nodes without zone labels.
func TestVolumeZones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		volume, node map[string]string
		want         bool
	}{
		{map[string]string{corev1.LabelTopologyZone: "a__b"}, map[string]string{corev1.LabelTopologyZone: "b"}, true},
		{map[string]string{corev1.LabelTopologyZone: "a__b"}, map[string]string{corev1.LabelTopologyZone: "c"}, false},
		{map[string]string{corev1.LabelTopologyZone: "a"}, nil, true},
		{map[string]string{corev1.LabelTopologyZone: "a"}, map[string]string{corev1.LabelTopologyRegion: "r"}, false},
		{map[string]string{corev1.LabelFailureDomainBetaZone: "a"}, map[string]string{corev1.LabelTopologyZone: "a"},
			true},
		{nil, map[string]string{corev1.LabelTopologyZone: "a"}, true},
	} {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: c.volume}}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.node}}
		if got := inZone(v, n); got != c.want {
			t.Errorf("%v on %v: %v", c.volume, c.node, got)
		}
	}
}

// TestBindingTime checks that a pod with claims that are not bound in time loses its node.
func TestBindingTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	host := &part.Host{Now: func() time.Time { return now }}
	s := &scheduler{
		Cluster: cluster.Scheduler(host), model: cluster3(),
		promised: map[string]promise{"default/p": {"u", "a", now.Add(bindingTime)}},
	}
	p := pod("p", "1")
	s.model.add(p, "a")
	claim := open("c", "made")
	claim.Annotations = map[string]string{helper.AnnSelectedNode: "a"}
	has := &volumes{open: []*corev1.PersistentVolumeClaim{claim}}
	if node, lost := s.keep("default/p", p, has, ""); node != "" || lost {
		t.Errorf("it is on %q, lost %v", node, lost)
	}
	now = now.Add(bindingTime)
	if node, lost := s.keep("default/p", p, has, ""); node != "" || !lost || len(s.promised) > 0 {
		t.Errorf("after its time it is on %q, lost %v", node, lost)
	}
}

// TestPreemptRepelling checks that a pod is preempted if its anti-affinity excludes a more important pod, even if it
// was the only such pod.
func TestPreemptRepelling(t *testing.T) {
	t.Parallel()
	m := cluster3()
	for _, other := range []string{"b", "c"} {
		m.setNode(other, nil)
	}
	m.add(pod("low", "1", away("h", "host")), "a")
	m.add(pod("other", "1"), "a")
	d := m.decide(pod("high", "1", priority(10)), func(string) map[string]string { return nil })
	if d.nominated != "a" || len(d.victims) != 1 || d.victims[0].name != "low" {
		t.Errorf("%+v", d)
	}
}

// TestNamed checks the message of kube-scheduler about nodes that a pod's required affinity does not name, as for pods
// of a DaemonSet.
func TestNamed(t *testing.T) {
	t.Parallel()
	p := pod("p", "5", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
				}}},
			},
		}}
	})
	d := cluster3().decide(p, func(string) map[string]string { return nil })
	const want = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
	if !strings.HasPrefix(d.because, want) {
		t.Error(d.because)
	}
}
