package scheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/bowsprit/bowsprit/internal/feature/quota"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// model is the scheduler's cache of nodes and the pods on them. Its owner locks it.
type model struct {
	nodes map[string]*nodeInfo // existing nodes, and nodes that pods name
	pods  map[string]*podInfo  // pods on nodes, by "namespace/name"
	// repelling are the pods with required anti-affinity, which constrains later pods. attracting are the pods with
	// other affinity terms.
	repelling, attracting map[string]*podInfo
	// nominated are the pods with a nominated node. Less important pods may not take its room.
	nominated map[string]*podInfo
	sorted    []*nodeInfo // existing nodes, by name; nil if it must be rebuilt
	from      int         // start of the next search in sorted, if there are many nodes
	// tallies are by namespace, then by the string form of their selector.
	tallies map[string]map[string]*tally
	// budgets returns the current disruption budgets; nil means none.
	budgets func() []budget
	// refresh updates a pod of which preemption needs more than its node; nil does nothing.
	refresh func(*podInfo)
	// lately holds the requests of the last pod: pods that are created together mostly have equal requests.
	lately amounts
}

func newModel() *model {
	return &model{
		nodes: map[string]*nodeInfo{}, pods: map[string]*podInfo{}, repelling: map[string]*podInfo{},
		attracting: map[string]*podInfo{}, nominated: map[string]*podInfo{}, tallies: map[string]map[string]*tally{},
	}
}

// nodeInfo is a node with its pods.
type nodeInfo struct {
	node *corev1.Node // name, labels, taints and unschedulable only; nil if it does not exist
	free amounts      // allocatable minus requested; may be negative
	all  amounts      // allocatable
	size compute      // allocatable, for scoring
	used compute      // requests for scoring, with defaults
	pods map[string]*podInfo
}

// podInfo holds the fields of a pod that scheduling needs. Only its node changes.
type podInfo struct {
	namespace, name, uid, node string
	generation                 int64
	labels                     map[string]string
	priority                   int32
	deleting                   bool
	going                      bool // it is a victim of preemption
	requests                   amounts
	assumed                    compute // requests, with defaults for containers without requests
	started                    int64   // start time in nanoseconds; math.MaxInt64 if it has not started
	*constraints
}

// constraints holds the fields that few pods have, or that only pods without a node need.
type constraints struct {
	spec        *corev1.PodSpec // nil for a pod on a node, like peers
	near, away  []*term         // required affinity and anti-affinity to pods
	preferences []preference    // preferred affinity and anti-affinity
	ports       []port
	claims      []string
	ephemeral   []string        // claims of ephemeral volumes, which are created for it
	volumes     *volumes        // of its claims, during the decision; may be nil
	peers       labels.Selector // pods to spread it from by default; nil means none
	nominee     string          // the nominated node
}

// wishless is shared by the thousands of pods on nodes that have none of these fields.
var wishless constraints

// settled returns the fields that matter for a pod on a node, without the ones that only its decision needs.
func (w *constraints) settled() *constraints {
	if len(w.near)+len(w.away)+len(w.preferences)+len(w.ports)+len(w.claims) == 0 {
		return &wishless
	}
	w.spec, w.peers = nil, nil
	return w
}

func (p *podInfo) key() string { return p.namespace + "/" + p.name }

// amounts are quantities of resources: CPU in thousandths, the others in units. "pods" counts pods.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, q := range list {
		if name == corev1.ResourceCPU {
			out[name] = q.MilliValue()
		} else {
			out[name] = q.Value()
		}
	}
	return out
}

func (a amounts) add(b amounts, sign int64) {
	for name, n := range b {
		a[name] += sign * n
	}
}

// compute is the resources that score nodes: CPU in thousandths and memory in bytes.
type compute [2]int64

func computeOf(list corev1.ResourceList) compute {
	return compute{list.Cpu().MilliValue(), list.Memory().Value()}
}

func (c *compute) add(d compute, sign int64) {
	for at := range c {
		c[at] += sign * d[at]
	}
}

// port is a host port of a pod.
type port struct {
	ip       string
	protocol corev1.Protocol
	number   int32
}

func (p port) conflicts(q port) bool {
	return p.number == q.number && p.protocol == q.protocol && (p.ip == q.ip || p.ip == anyIP || q.ip == anyIP)
}

const anyIP = "0.0.0.0"

// leastRequests are the requests that kube-scheduler assumes, in scoring, for containers without requests.
var leastRequests = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("200Mi"),
}

// digest returns the fields of a pod that scheduling needs.
func digest(pod *corev1.Pod) *podInfo {
	p := &podInfo{
		namespace: pod.Namespace, name: pod.Name, uid: string(pod.UID), generation: pod.Generation, labels: pod.Labels,
		requests:    amountsOf(quota.PodRequests(pod)),
		assumed:     computeOf(quota.AssumedRequests(pod, leastRequests)),
		deleting:    pod.DeletionTimestamp != nil,
		constraints: &constraints{spec: &pod.Spec, nominee: pod.Status.NominatedNodeName},
	}
	p.look(pod)
	p.near, p.away, p.preferences = termsOf(p, pod.Spec.Affinity)
	p.requests[corev1.ResourcePods] = 1
	if pod.Spec.Priority != nil {
		p.priority = *pod.Spec.Priority
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, sidecars(pod.Spec.InitContainers)} {
		for _, c := range containers {
			for _, has := range c.Ports {
				if has.HostPort > 0 {
					p.ports = append(p.ports, port{
						cmp.Or(has.HostIP, anyIP), cmp.Or(has.Protocol, corev1.ProtocolTCP), has.HostPort,
					})
				}
			}
		}
	}
	p.claims = cluster.ClaimsOf(pod)
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil {
			p.ephemeral = append(p.ephemeral, ephemeral.VolumeClaimName(pod, v))
		}
	}
	return p
}

// look updates the fields that change while a pod runs.
func (p *podInfo) look(pod *corev1.Pod) {
	if p.started = math.MaxInt64; pod.Status.StartTime != nil {
		p.started = pod.Status.StartTime.UnixNano()
	}
	p.going = pod.DeletionTimestamp != nil && slices.ContainsFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
				c.Reason == corev1.PodReasonPreemptionByScheduler
		})
}

// sidecars are the init containers that go on running.
func sidecars(all []corev1.Container) (out []corev1.Container) {
	for _, c := range all {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return out
}

// setNode adds or updates a node, or removes it if n is nil.
func (m *model) setNode(name string, n *corev1.Node) {
	i := m.nodes[name]
	if i == nil {
		if n == nil {
			return
		}
		i = &nodeInfo{pods: map[string]*podInfo{}}
		m.nodes[name] = i
	}
	if (i.node == nil) != (n == nil) {
		m.sorted = nil
	}
	i.node = nil
	if n != nil { // omits status and managedFields, which are most of a node
		i.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Spec: n.Spec}
	}
	if n == nil && len(i.pods) == 0 {
		delete(m.nodes, name)
		return
	}
	i.all, i.free, i.size, i.used = amounts{}, amounts{}, compute{}, compute{}
	if n != nil {
		i.all, i.size = amountsOf(n.Status.Allocatable), computeOf(n.Status.Allocatable)
	}
	i.free.add(i.all, 1)
	for _, p := range i.pods {
		i.free.add(p.requests, -1)
		i.used.add(p.assumed, 1)
	}
}

// add puts a pod on a node.
func (m *model) add(p *podInfo, node string) {
	key := p.key()
	m.remove(key)
	delete(m.nominated, key)
	p.constraints, p.node = p.settled(), node
	if maps.Equal(p.requests, m.lately) {
		p.requests = m.lately
	}
	m.lately = p.requests
	i := m.nodes[node]
	if i == nil {
		i = &nodeInfo{pods: map[string]*podInfo{}, all: amounts{}, free: amounts{}}
		m.nodes[node] = i
	}
	i.pods[key], m.pods[key] = p, p
	i.free.add(p.requests, -1)
	i.used.add(p.assumed, 1)
	if len(p.away) > 0 {
		m.repelling[key] = p
	}
	if len(p.near)+len(p.preferences) > 0 {
		m.attracting[key] = p
	}
	m.note(p, 1)
}

// remove removes a pod from its node and reports whether it was on one.
func (m *model) remove(key string) bool {
	p := m.pods[key]
	if p == nil {
		return false
	}
	delete(m.pods, key)
	delete(m.repelling, key)
	delete(m.attracting, key)
	m.note(p, -1)
	i := m.nodes[p.node]
	delete(i.pods, key)
	i.free.add(p.requests, 1)
	i.used.add(p.assumed, -1)
	if i.node == nil && len(i.pods) == 0 {
		delete(m.nodes, p.node)
	}
	return true
}

// existing returns the nodes that exist, sorted by name.
func (m *model) existing() []*nodeInfo {
	if m.sorted == nil {
		m.sorted = []*nodeInfo{}
		for _, i := range m.nodes {
			if i.node != nil {
				m.sorted = append(m.sorted, i)
			}
		}
		slices.SortFunc(m.sorted, func(a, b *nodeInfo) int { return cmp.Compare(a.node.Name, b.node.Name) })
	}
	return m.sorted
}

func (m *model) count() int { return len(m.existing()) }

func sameLabels(a, b map[string]string) bool { return maps.Equal(a, b) }
