package workloads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// schedulerCase is a random cluster.
type schedulerCase struct {
	// ranked gives pods priorities, and budgets to some of them.
	ranked bool
	// stored gives pods claims, with volumes or a provisioner.
	stored  bool
	r       *rand.Rand
	client  kubernetes.Interface
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	set     *appsv1.ReplicaSet
	made    *corev1.Pod
	budgets []*policyv1.PodDisruptionBudget
	// claims and volumes exist before the new pod.
	claims  []corev1.PersistentVolumeClaim
	single  map[string]bool // the names of claims that only one pod may have
	volumes []corev1.PersistentVolume
}

func (c *schedulerCase) String() (text string) {
	for _, n := range c.nodes {
		text += fmt.Sprintf("%s %v %v %v\n", n.Name, n.Labels, n.Spec, n.Status.Allocatable)
	}
	for _, claim := range c.claims {
		text += fmt.Sprintf("claim %s %v %v %v %v deleting %v\n", claim.Name, claim.Annotations, claim.Spec, claim.Status,
			claim.Spec.StorageClassName, claim.DeletionTimestamp)
	}
	for _, v := range c.volumes {
		text += fmt.Sprintf("volume %s %v %v\n", v.Name, v.Labels, v.Spec)
	}
	pods := c.pods
	if c.made != nil {
		pods = append(pods, c.made)
	}
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			text += v.PersistentVolumeClaim.ClaimName + " for "
		}
		text += fmt.Sprintf("%s on %s %s %v %v %v %v deleting %v\n", p.Name, p.Spec.NodeName,
			p.Spec.PriorityClassName, p.Labels,
			p.Spec.Containers[0].Resources.Requests, p.Spec.Affinity, p.Spec.TopologySpreadConstraints,
			p.DeletionTimestamp)
	}
	return text
}

// one reports true once in n times.
func (c *schedulerCase) one(n int) bool { return c.r.IntN(n) == 0 }

func (c *schedulerCase) pick(of ...string) string { return of[c.r.IntN(len(of))] }

func (c *schedulerCase) prepare(ctx context.Context) error {
	core := c.client.CoreV1()
	nodes := 2 + c.r.IntN(5)
	for i := range nodes {
		n, err := core.Nodes().Create(ctx, c.node(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(1+c.r.IntN(4))*1000, apiresource.DecimalSI),
			corev1.ResourceMemory: *apiresource.NewQuantity(int64(1+c.r.IntN(4))<<30, apiresource.BinarySI),
			corev1.ResourcePods:   *apiresource.NewQuantity(int64(3+c.r.IntN(9)), apiresource.DecimalSI),
		}
		n.Status.Capacity = n.Status.Allocatable
		if _, err := core.Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if c.one(2) {
		_, err := core.Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec:       corev1.ServiceSpec{Selector: c.labels(), Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	if c.one(2) {
		own := map[string]string{"app": "a"}
		set, err := c.client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: appsv1.ReplicaSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: own}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: c.pod("").Spec,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		c.set = set
	}
	var used []string
	if c.stored {
		if err := c.prepareVolumes(ctx, nodes); err != nil {
			return err
		}
	}
	for i := range c.r.IntN(12) {
		p := c.pod(fmt.Sprintf("old-%d", i))
		p.Spec.NodeName = fmt.Sprintf("n%d", c.r.IntN(nodes))
		// No two pods have the same port of a node: kube-scheduler, which would not put them there, frees the port when
		// it removes one of them.
		if ports := &p.Spec.Containers[0].Ports; len(*ports) > 0 {
			if use := fmt.Sprint(p.Spec.NodeName, (*ports)[0].HostPort); slices.Contains(used, use) {
				*ports = nil
			} else {
				used = append(used, use)
			}
		}
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { // likewise
			name := v.PersistentVolumeClaim.ClaimName
			taken := c.single[name] && slices.Contains(used, name)
			used = append(used, name)
			return taken
		})
		made, err := core.Pods("default").Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if c.ranked {
			if err := c.start(ctx, made, i); err != nil {
				return err
			}
		}
		if c.one(8) {
			if err := core.Pods("default").Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	if c.ranked {
		return c.createBudgets(ctx)
	}
	return nil
}

func (c *schedulerCase) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}}
	if !c.one(8) {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	if !c.one(4) {
		n.Labels[corev1.LabelTopologyZone] = c.pick("east", "west")
	}
	if c.one(2) {
		n.Labels["disk"] = c.pick("ssd", "hdd")
	}
	for range c.r.IntN(3) {
		if c.one(3) {
			n.Spec.Taints = []corev1.Taint{{Key: c.pick("k", "l"), Value: c.pick("x", "y"), Effect: corev1.TaintEffect(
				c.pick("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))}}
		}
	}
	n.Spec.Unschedulable = c.one(12)
	return n
}

// schedule makes the cluster and the new pod. It returns kube-scheduler's decision about the pod, and ours: its node,
// or the message. shows is false if our decision would have no visible effect.
func (c *schedulerCase) schedule(t *testing.T, k *kubeScheduler) (want decision, node, message string, shows bool) {
	t.Helper()
	if err := c.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.take(t, c)
	pod := c.pod("new")
	if c.ranked {
		pod.Spec.PriorityClassName = c.pick("high", "high", "high", "mid", "never")
	}
	pod, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.made = pod
	if want = k.decide(t, pod); len(want.best) > 0 && !c.bind(t, pod) {
		return want, "", "", false
	}
	node, message = c.outcome(t, pod)
	return want, node, message, true
}

// outcome waits until the new pod has a node, or its first message with the reason why it has none.
func (c *schedulerCase) outcome(t *testing.T, pod *corev1.Pod) (node, message string) {
	t.Helper()
	c.await(t, pod, func(p *corev1.Pod) bool {
		c.made, node = p, p.Spec.NodeName
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				message = condition.Message
			}
		}
		return node != "" || message != ""
	})
	return node, message
}

// await waits for the first state of a pod, from the given one on, for which as returns true.
func (c *schedulerCase) await(t *testing.T, pod *corev1.Pod, as func(*corev1.Pod) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := c.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for ev := range changes.ResultChan() {
		if p, ok := ev.Object.(*corev1.Pod); !ok || as(p) {
			if !ok {
				t.Fatalf("pod %s: %+v", pod.Name, ev.Object)
			}
			return
		}
	}
	t.Fatalf("pod %s does not come to the state that is awaited\n%s", pod.Name, c)
}

func (c *schedulerCase) clean(t *testing.T) {
	t.Helper()
	core, now := c.client.CoreV1(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	errs := []error{core.Pods("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		core.Nodes().DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		c.client.AppsV1().ReplicaSets("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		core.Services("default").Delete(t.Context(), "s", now),
		c.client.PolicyV1().PodDisruptionBudgets("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
	}
	errs = append(errs, c.cleanVolumes(t.Context()))
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}
