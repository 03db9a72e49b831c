package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Refusal returns why the kubelet of a node that runs the pods others rejects another pod; "" and "" if the kubelet
// accepts it. reason is for status.reason, and message, after "Pod was rejected: ", for status.message. A scheduler
// with a current view binds no pod that the kubelet rejects, but a client may set spec.nodeName. Source of the checks
// and their order: pkg/kubelet/lifecycle/predicate.go of Kubernetes 1.36.
func Refusal(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) (reason, message string) {
	m := newModel()
	m.setNode(node.Name, node)
	for _, other := range others {
		m.add(digest(other), node.Name)
	}
	p, i := digest(pod), m.nodes[node.Name]
	if name, message := p.exceeds(i); name != "" {
		return "OutOf" + string(name), message
	}
	// The message for an untolerated taint is a kubelet's. It differs from that of filter.go, which is about several
	// nodes.
	r := &round{model: m, pod: p}
	switch ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); {
	case !ok || err != nil:
		return predicate("NodeAffinity", otherNode)
	case r.portTaken(i):
		return predicate("NodePorts", noPorts)
	case slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && !tolerates(pod.Spec.Tolerations, &t)
	}):
		return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
	}
	return "", ""
}

func predicate(name, why string) (reason, message string) {
	return name, fmt.Sprintf("Predicate %s failed: %s", name, why)
}

// exceeds finds a resource that a node has too little of: first pods, CPU, memory and ephemeral storage, then others by
// name. Kubelets ignore extended resources that the node does not have at all.
func (p *podInfo) exceeds(i *nodeInfo) (name corev1.ResourceName, message string) {
	names := []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	}
	for _, name := range slices.Sorted(maps.Keys(p.requests)) {
		if _, has := i.all[name]; !slices.Contains(names, name) && (has || !isExtended(name)) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if wanted := p.requests[name]; wanted > 0 && wanted > i.free[name] {
			return name, fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, wanted, i.all[name]-i.free[name], i.all[name])
		}
	}
	return "", ""
}

// isExtended reports whether a resource is none of Kubernetes' own.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
