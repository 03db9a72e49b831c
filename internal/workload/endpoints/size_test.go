package endpoints

//lint:file-ignore SA1019 Endpoints are made and served as ever

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// nodeOf returns a ready node with CPU in a zone.
func nodeOf(zone string, cpu int64) *corev1.Node {
	n := &corev1.Node{}
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI)}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// TestHugeCPU has zones whose CPU overflows 64 bits. As sums of integers they gave a zone a negative share, and the
// assignment of endpoints had no end.
func TestHugeCPU(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	nodes := []*corev1.Node{nodeOf("a", most), nodeOf("a", most/2+2), nodeOf("b", most/2+2)}
	var sum float64
	for zone, share := range shares(nodes) {
		if share < 0 || share > 1 {
			t.Fatalf("zone %s has a share of %v", zone, share)
		}
		sum += share
	}
	if math.Abs(sum-1) > 0.001 {
		t.Errorf("all shares are %v", sum)
	}
}

// TestRepackLarge repacks as many addresses as one object can hold, in time that grows with their number.
func TestRepackLarge(t *testing.T) {
	t.Parallel()
	var s corev1.EndpointSubset
	for i := range 60_000 {
		ip := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	for i := range 3 {
		s.Ports = append(s.Ports, corev1.EndpointPort{Port: int32(i + 1)})
	}
	if n := pairs([]corev1.EndpointSubset{s, {Addresses: s.Addresses}}); n != 240_000 {
		t.Errorf("%d pairs", n)
	}
	if out := repack([]corev1.EndpointSubset{s}); len(out) != 1 || len(out[0].Addresses) != 60_000 ||
		len(out[0].Ports) != 3 {
		t.Errorf("%d subsets", len(out))
	}
}

// TestPortsShared has pods with equal ports share a list.
func TestPortsShared(t *testing.T) {
	t.Parallel()
	svc := &corev1.Service{}
	for i := range 300 {
		port := corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i + 1), Protocol: corev1.ProtocolTCP}
		port.TargetPort.IntVal = port.Port
		svc.Spec.Ports = append(svc.Spec.Ports, port)
	}
	svc.Spec.Ports[0].TargetPort.Type, svc.Spec.Ports[0].TargetPort.StrVal = 1, "web"
	pod := func(number int32) *corev1.Pod {
		p := &corev1.Pod{}
		if number > 0 {
			p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{
				{Name: "web", ContainerPort: number, Protocol: corev1.ProtocolTCP},
			}}}
		}
		return p
	}
	known := newPorts(svc)
	first := known.of(pod(80))
	if len(first.list) != 300 || known.of(pod(80)) != first {
		t.Errorf("%d ports, and %d lists", len(first.list), len(known.lists))
	}
	if other := known.of(pod(81)); other == first || other.key == first.key {
		t.Error("pods of other ports have the same list")
	}
	if lacks := known.of(pod(0)); len(lacks.list) != 299 {
		t.Errorf("a pod without the named port has %d", len(lacks.list))
	}
}
