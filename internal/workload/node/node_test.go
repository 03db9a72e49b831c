package node_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestNodesAreThereAtOnce checks that a ready server has its nodes, ready for pods, as kubelets describe them.
func TestNodesAreThereAtOnce(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.WithWorkloads("nodes=2", "zones=2", "cpu=4", "name=worker-%d"))
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[0].Name != "worker-0" || list.Items[1].Name != "worker-1" {
		t.Fatalf("nodes: %v", list.Items)
	}
	for i := range list.Items {
		n := &list.Items[i]
		if len(n.Spec.Taints) != 0 {
			t.Errorf("%s has taints %v", n.Name, n.Spec.Taints)
		}
		ready := false
		for _, c := range n.Status.Conditions {
			ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			if c.LastTransitionTime.IsZero() || c.LastHeartbeatTime.IsZero() {
				t.Errorf("%s has a condition without a time: %v", n.Name, c)
			}
		}
		if cpu := n.Status.Allocatable.Cpu(); !ready || cpu.Value() != 4 || n.Labels[corev1.LabelHostname] != n.Name {
			t.Errorf("%s: ready %v, %v CPUs, labels %v", n.Name, ready, cpu, n.Labels)
		}
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "worker-1",
		metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "worker-1" || lease.OwnerReferences[0].UID != list.Items[1].UID {
		t.Errorf("the Lease of worker-1: %v, %v", lease, err)
	}
}
