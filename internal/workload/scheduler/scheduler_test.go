package scheduler

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// cluster3 is three nodes of 4 CPUs in two zones: a and b in east, c in west.
func cluster3() *model {
	m := newModel()
	for i, name := range []string{"a", "b", "c"} {
		zone := "east"
		if i == 2 {
			zone = "west"
		}
		m.setNode(name, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name, "zone": zone}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
				corev1.ResourcePods: resource.MustParse("3"),
			}},
		})
	}
	return m
}

// pod returns a pod that requests CPU, with labels app=name's first letters.
func pod(name, cpu string, change ...func(*corev1.Pod)) *podInfo {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: "u", Labels: map[string]string{"app": name[:1]},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
	}
	for _, f := range change {
		f(p)
	}
	return digest(p)
}

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func hostPort(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: n}} }
}

func terms(app, key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
}

func near(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms(app, key),
		}}
	}
}

func away(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms(app, key),
		}}
	}
}

func spread(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}
	}
}

// anyway turns the constraints of a pod into preferences.
func anyway(p *corev1.Pod) {
	for i := range p.Spec.TopologySpreadConstraints {
		p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
	}
}

// wishing has a pod prefer to be near others of an app, or away from them if the weight is less than 0.
func wishing(app, key string, weight int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		all := []corev1.WeightedPodAffinityTerm{{Weight: max(weight, -weight), PodAffinityTerm: terms(app, key)[0]}}
		if p.Spec.Affinity = (&corev1.Affinity{}); weight > 0 {
			p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: all}
		} else {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: all,
			}
		}
	}
}

// peered is a pod of a service or a controller with others.
func peered(p *podInfo, app string) *podInfo {
	p.peers = labels.SelectorFromSet(labels.Set{"app": app})
	return p
}

func selects(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func prefers(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
				}},
			}},
		}}
	}
}

// TestDecisions puts pods on nodes ("a" to "c", in this order), possibly changes the nodes, and checks the decision for
// one more pod: its node, or the reason and the victims.
func TestDecisions(t *testing.T) {
	t.Parallel()
	const helpless = preempting + "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	for name, c := range map[string]struct {
		there  map[string][]*podInfo
		change func(m *model)
		pod    *podInfo
		want   string
	}{
		"emptiest": {there: map[string][]*podInfo{"a": {pod("x1", "2")}, "b": {pod("x2", "1")}, "c": {pod("x3", "3")}},
			pod: pod("p", "1"), want: "b"},
		"selector": {pod: pod("p", "1", selects("zone", "west")), want: "c"},
		"prefers":  {pod: pod("p", "1", prefers("host", "b")), want: "b"},
		"no such label": {pod: pod("p", "1", selects("zone", "south")),
			want: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector." + helpless},
		"too large": {pod: pod("p", "5"), want: "0/3 nodes are available: 3 Insufficient cpu." + helpless},
		"full": {there: map[string][]*podInfo{"a": {pod("x1", "4")}, "b": {pod("x2", "4")}, "c": {pod("x3", "4")}},
			pod: pod("p", "1"), want: "0/3 nodes are available: 3 Insufficient cpu. " +
				"preemption: " +
				"0/3 nodes are available: 3 No preemption victims found for incoming pod."},
		"too many": {there: map[string][]*podInfo{"c": {pod("x1", "0"), pod("x2", "0"), pod("x3", "0")}},
			pod: pod("p", "1", selects("host", "c")),
			want: "0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector. " +
				"preemption: " +
				"0/3 nodes are available: 1 No preemption victims found for incoming pod, " +
				"2 Preemption is not helpful for scheduling."},
		"cordoned and tainted": {change: func(m *model) {
			m.nodes["a"].node.Spec.Unschedulable = true
			m.nodes["b"].node.Spec.Taints = []corev1.Taint{
				{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule},
			}
		}, pod: pod("p", "1", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		}), want: "b"},
		"untolerated": {change: func(m *model) {
			for _, i := range m.nodes {
				i.node.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}}
			}
		}, pod: pod("p", "1"), want: "0/3 nodes are available: 3 node(s) had untolerated taint(s)." + helpless},
		"ports": {
			there: map[string][]*podInfo{"a": {pod("x1", "0", hostPort(80))}, "b": {pod("x2", "0", hostPort(80))}},
			pod:   pod("p", "0", hostPort(80)), want: "c"},
		"near": {there: map[string][]*podInfo{"c": {pod("x1", "3")}}, pod: pod("p", "1", near("x", "zone")), want: "c"},
		"near nobody": {pod: pod("p", "1", near("x", "zone")),
			want: "0/3 nodes are available: 3 node(s) didn't match pod affinity rules." + helpless},
		"near itself": {pod: pod("p", "1", near("p", "zone")), want: "a"},
		"away": {there: map[string][]*podInfo{"a": {pod("x1", "0")}}, pod: pod("p", "3", away("x", "zone")),
			want: "c"},
		"repelled": {there: map[string][]*podInfo{"b": {pod("x1", "0", away("p", "zone"))}}, pod: pod("p", "3"),
			want: "c"},
		"spread": {there: map[string][]*podInfo{"a": {pod("p1", "0")}, "c": {pod("x1", "3")}},
			pod: pod("p2", "1", spread("p", "zone")), want: "c"},
		"spread of an empty selector": {there: map[string][]*podInfo{"a": {pod("p1", "0")}},
			pod: pod("p2", "4", spread("p", "zone"), selects("host", "a"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
			}), want: "a"},
		"spread anyway": {there: map[string][]*podInfo{"a": {pod("p1", "0")}, "c": {pod("x1", "1")}},
			pod: pod("p2", "1", spread("p", "zone"), anyway), want: "c"},
		"spread anyway where it can be": {there: map[string][]*podInfo{"a": {pod("p1", "0")}, "c": {pod("x1", "4")}},
			pod: pod("p2", "1", spread("p", "zone"), anyway), want: "b"},
		"spread beside taints": {there: map[string][]*podInfo{"a": {pod("p1", "0")}}, change: func(m *model) {
			m.nodes["c"].node.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}, pod: pod("p2", "1", spread("p", "zone"), func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}), want: "b"},
		"wishes to be near": {there: map[string][]*podInfo{"c": {pod("x1", "1")}},
			pod: pod("p", "1", wishing("x", "zone", 1)), want: "c"},
		"wishes to be away": {there: map[string][]*podInfo{"a": {pod("x1", "0")}},
			pod: pod("p", "1", wishing("x", "zone", -1)), want: "c"},
		"is wished near": {there: map[string][]*podInfo{"c": {pod("x1", "1", wishing("p", "zone", 1))}},
			pod: pod("p", "1"), want: "c"},
		"is wished away": {there: map[string][]*podInfo{"a": {pod("x1", "0", wishing("p", "zone", -1))}},
			pod: pod("p", "1"), want: "c"},
		"is needed near": {there: map[string][]*podInfo{"c": {pod("x1", "1", near("p", "zone"))}},
			pod: pod("p", "1"), want: "c"},
		"apart from its peers": {there: map[string][]*podInfo{"a": {pod("p1", "0")}, "b": {pod("p2", "0")},
			"c": {pod("x1", "1")}}, change: func(m *model) {
			for name, i := range m.nodes {
				i.node.Labels[corev1.LabelHostname] = name
			}
		}, pod: peered(pod("p3", "1"), "p"), want: "c"},
		"preempts": {there: map[string][]*podInfo{
			"a": {pod("x1", "4", priority(5))}, "b": {pod("x2", "1", priority(1)), pod("x3", "3", priority(2))},
			"c": {pod("x4", "4", priority(20))},
		}, pod: pod("p", "2", priority(10)), want: "0/3 nodes are available: 3 Insufficient cpu. b: x3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := cluster3()
			for node, pods := range c.there {
				for _, p := range pods {
					m.add(p, node)
				}
			}
			if c.change != nil {
				c.change(m)
			}
			if got := describe(m.decide(c.pod, func(string) map[string]string { return nil })); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func describe(d decision) string {
	if d.node != "" {
		return d.node
	}
	text := d.because
	if d.nominated != "" {
		var names []string
		for _, v := range d.victims {
			names = append(names, v.name)
		}
		text += fmt.Sprintf(" %s: %s", d.nominated, strings.Join(names, " "))
	}
	return text
}

// TestNominated checks that less important pods do not take the room reserved for a nominated pod.
func TestNominated(t *testing.T) {
	t.Parallel()
	m := cluster3()
	for _, name := range []string{"a", "b"} {
		m.setNode(name, nil)
	}
	first := pod("first", "3", priority(10))
	first.node = "c"
	m.nominated[first.key()] = first
	none := func(string) map[string]string { return nil }
	want := "0/1 nodes are available: 1 Insufficient cpu." + preempting + "0/1 nodes are available: " +
		"1 No preemption victims found for incoming pod."
	if got := describe(m.decide(pod("late", "2"), none)); got != want {
		t.Errorf("a less important pod: %s", got)
	}
	if got := describe(m.decide(pod("small", "1"), none)); got != "c" {
		t.Errorf("a pod that fits beside it: %s", got)
	}
	if got := describe(m.decide(pod("urgent", "2", priority(20)), none)); got != "c" {
		t.Errorf("a more important pod: %s", got)
	}
	if got := describe(m.decide(first, none)); got != "c" {
		t.Errorf("the pod itself: %s", got)
	}
}

// TestModelForgets checks that the resources of removed pods are free again, whatever has happened to their nodes.
func TestModelForgets(t *testing.T) {
	t.Parallel()
	m := cluster3()
	m.add(pod("x1", "3"), "a")
	m.add(pod("x1", "3"), "b") // recreated on another node
	if free := m.nodes["a"].free[corev1.ResourceCPU]; free != 4000 {
		t.Errorf("a has %d of 4000 free", free)
	}
	m.setNode("b", nil)
	if m.count() != 2 || len(m.nodes) != 3 {
		t.Errorf("%d nodes, %d of them there", len(m.nodes), m.count())
	}
	apps := labels.SelectorFromSet(labels.Set{"app": "x"})
	m.add(pod("x2", "0"), "c")
	if on := m.tally("default", apps); on["b"] != 1 || on["c"] != 1 || len(on) != 2 {
		t.Errorf("counted %v", on)
	}
	m.add(pod("x2", "0", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "c")
	if on := m.tally("default", apps); on["b"] != 1 || len(on) != 1 {
		t.Errorf("counted %v, though one is being deleted", on)
	}
	m.remove("default/x2")
	if !m.remove("default/x1") || m.remove("default/x1") || len(m.nodes) != 2 || len(m.pods) != 0 {
		t.Errorf("nodes %v, pods %v", m.nodes, m.pods)
	}
}
