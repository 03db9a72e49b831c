package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Refusal returns why the kubelet of a node, which has taken the pods others, does not take another one; "" and "" if
// it does. The reason becomes the pod's status.reason, and the message, after "Pod was rejected: ", its status.message.
// A scheduler that knows all pods gives a kubelet none that it refuses, but a client may, by spec.nodeName. Rules, in
// their order: pkg/kubelet/lifecycle/predicate.go of Kubernetes 1.36.
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
	// The text of an untolerated taint is a kubelet's, and not that of filter.go: there it is of several nodes.
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

// exceeds looks for something of which a node has not enough left: first for pods, CPU, memory and ephemeral storage,
// then for others by name. Extended resources that the node does not have at all are not a kubelet's concern.
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
