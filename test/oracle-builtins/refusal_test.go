package oraclebuiltins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/bowsprit/bowsprit/internal/workload/scheduler"
)

// TestRefusal compares a kubelet's own admission check and the simulated kubelets' check on random pods and nodes.
func TestRefusal(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		node := refusingNode(r)
		var others []*corev1.Pod
		for i := range r.IntN(4) {
			others = append(others, refusablePod(r, fmt.Sprint("other-", i), node.Name))
		}
		pod := refusablePod(r, "pod", node.Name)
		handler := lifecycle.NewPredicateAdmitHandler(
			func(context.Context, bool) (*corev1.Node, error) { return node, nil }, unrecovered{},
			func(*framework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil })
		want := handler.Admit(t.Context(),
			&lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others, Operation: lifecycle.AddOperation})
		reason, message := scheduler.Refusal(pod, node, others)
		if want.Admit != (reason == "") || reason != want.Reason || message != want.Message {
			t.Errorf("seed %d: %s: %s; Kubernetes says %+v", seed, reason, message, want)
		}
		seen[want.Reason]++
	}
	for _, reason := range []string{
		"", "OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfexample.com/gpu", "NodeAffinity", "NodePorts",
		"TaintToleration",
	} {
		if seen[reason] < 20 {
			t.Errorf("%d pods are refused for %q: %v", seen[reason], reason, seen)
		}
	}
}

// unrecovered makes no room for critical pods.
type unrecovered struct{}

func (unrecovered) HandleAdmissionFailure(
	_ context.Context, _ *corev1.Pod, why []lifecycle.PredicateFailureReason,
	_ lifecycle.Operation,
) ([]lifecycle.PredicateFailureReason, error) {
	return why, nil
}

func refusingNode(r *rand.Rand) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"size": "small"}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: *resource.NewQuantity(int64(2+r.IntN(4)), resource.DecimalSI),
	}
	if r.IntN(2) == 0 {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
	}
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule} {
		if r.IntN(4) == 0 {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "a", Value: "b", Effect: effect})
		}
	}
	return n
}

func refusablePod(r *rand.Rand, name, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for i := range 1 + r.IntN(2) {
		c := corev1.Container{Name: fmt.Sprint("c", i)}
		c.Resources.Requests = corev1.ResourceList{}
		for resourceName, values := range map[corev1.ResourceName][]string{
			corev1.ResourceCPU: {"100m", "800m", "1"}, corev1.ResourceMemory: {"100Mi", "1Gi", "2Gi"},
			"example.com/gpu": {"1"},
		} {
			if at := r.IntN(2 * len(values)); at < len(values) {
				c.Resources.Requests[resourceName] = resource.MustParse(values[at])
			}
		}
		if r.IntN(2) == 0 {
			c.Ports = []corev1.ContainerPort{{
				ContainerPort: 80, HostPort: int32(8080 + r.IntN(3)),
				HostIP:   []string{"", "0.0.0.0", "127.0.0.1"}[r.IntN(3)],
				Protocol: []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}[r.IntN(2)],
			}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if r.IntN(4) == 0 {
		p.Spec.NodeSelector = map[string]string{"size": []string{"small", "large"}[r.IntN(2)]}
	}
	if r.IntN(2) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
	}
	return p
}
