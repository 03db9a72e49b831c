// Package node simulates nodes: Node objects as kubelets register them, their Leases, and the behavior of
// node-lifecycle-controller and taint-eviction-controller of kube-controller-manager on unhealthy nodes.
//
// A node is simulated if it has kwok's node annotation, whether the server (Part) or a client created it. Package pod
// runs the pods of a node.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// start creates the missing nodes, ready for pods, so that a ready server has its nodes. If there are Stages for nodes,
// the Stages make them ready.
func start(ctx context.Context, h *part.Host, s Settings, stages cluster.Stages) error {
	c := cluster.Kubelets(h)
	var made []string
	for i := range s.Nodes {
		n := s.node(i)
		if stages.Replace(cluster.NodeKind) {
			n.Status = corev1.NodeStatus{Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable}
		}
		if c.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", n.Name) != nil {
			continue
		}
		if err := register(ctx, c.Kubelet(n.Name), n); err != nil {
			if control.Refused(ctx, err) {
				h.Log.Warn("a simulated node cannot be made; it is missing until the server starts again",
					"node", n.Name, "error", err)
				continue
			}
			return fmt.Errorf("simulated node %s: %w", n.Name, err)
		}
		made = append(made, n.Name)
	}
	if err := h.View.FreshOwn(ctx); err != nil {
		return err
	}
	life := newLifecycle(cluster.Controller(h, lifecycleController))
	for _, name := range made {
		var later control.Again
		if err := life.Reconcile(ctx, name); err != nil && !errors.As(err, &later) && !control.Refused(ctx, err) {
			return fmt.Errorf("simulated node %s: %w", name, err)
		}
	}
	return nil
}

// register creates a node and its Lease.
func register(ctx context.Context, c *cluster.Cluster, n *corev1.Node) error {
	now := metav1.Time{Time: c.Now()}
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].LastHeartbeatTime, n.Status.Conditions[i].LastTransitionTime = now, now
	}
	made, err := cluster.Nodes.Create(ctx, c, n)
	if apierrors.IsAlreadyExists(err) { // another replica was faster
		return nil
	}
	if err != nil {
		return err
	}
	return renew(ctx, c, made.Name, string(made.UID))
}

// node returns the node of a number.
func (s Settings) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        strings.Replace(s.Name, "%d", fmt.Sprint(i), 1),
		Annotations: map[string]string{cluster.NodeAnnotation: cluster.FakeNode},
	}}
	if s.Zones > 0 {
		n.Labels = map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%s.Zones)}
	}
	complete(n, s)
	return n
}

// complete fills in the fields of a node that its kubelet would set.
func complete(n *corev1.Node, s Settings) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for label, value := range map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
	} {
		if n.Labels[label] == "" {
			n.Labels[label] = value
		}
	}
	completeStatus(n, s)
}

func completeStatus(n *corev1.Node, s Settings) {
	status := &n.Status
	if status.Capacity == nil {
		status.Capacity = status.Allocatable.DeepCopy()
	}
	if len(status.Capacity) == 0 {
		status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: s.CPU, corev1.ResourceMemory: s.Memory,
			corev1.ResourcePods:             *resource.NewQuantity(int64(s.Pods), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: resource.MustParse("256Gi"),
		}
	}
	if len(status.Allocatable) == 0 {
		status.Allocatable = status.Capacity.DeepCopy()
	}
	if len(status.Addresses) == 0 {
		status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: cluster.NodeAddress(n.Name).String()},
			{Type: corev1.NodeHostName, Address: n.Name},
		}
	}
	if status.NodeInfo.KubeletVersion == "" {
		status.NodeInfo = corev1.NodeSystemInfo{
			Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: kubeletVersion,
			ContainerRuntimeVersion: "simulated://" + kubeletVersion, KernelVersion: "simulated",
			OSImage: "simulated by bowsprit", MachineID: n.Name, SystemUUID: n.Name, BootID: n.Name,
		}
	}
	if status.DeclaredFeatures == nil {
		status.DeclaredFeatures = slices.Clone(features)
	}
	for _, c := range healthy {
		if condition(n, c.Type) == nil {
			status.Conditions = append(status.Conditions, c)
		}
	}
}

// kubeletVersion is that of the kubelets of simulated nodes.
const kubeletVersion = "v1.37.2"

// features are the features of pods that simulated kubelets implement, sorted, of the features that kubelets declare
// (KEP-5328).
var features = []string{
	"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
	"RestartAllContainersOnContainerExits",
}

// healthy are the conditions of a healthy node, in a kubelet's words.
var healthy = []corev1.NodeCondition{
	{
		Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
		Message: "kubelet has sufficient memory available",
	},
	{
		Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
		Message: "kubelet has no disk pressure",
	},
	{
		Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
		Message: "kubelet has sufficient PID available",
	},
	{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status",
	},
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}
