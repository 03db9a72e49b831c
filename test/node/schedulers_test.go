package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestSchedulersPage runs docs/schedulers.md. At the end the pods of both schedulers are bound by their own scheduler.
func TestSchedulersPage(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.runPage(t, "schedulers.md", map[string]string{
		"--secure-port=10259": "--secure-port=" + freePort(t), "--secure-port=10260": "--secure-port=" + freePort(t),
	})
	if t.Failed() {
		for _, name := range []string{"kube-scheduler.log", "my-scheduler.log"} {
			log, _ := os.ReadFile(filepath.Join(c.home, name))
			t.Logf("%s: %s", name, log)
		}
	}
	client := c.client(t)
	for _, scheduler := range []string{"default-scheduler", "my-scheduler"} {
		schedule(t, client, scheduler, "last-"+scheduler)
	}
	for _, name := range []string{"kube-scheduler.log", "my-scheduler.log"} {
		log, err := os.ReadFile(filepath.Join(c.home, name))
		if err != nil {
			t.Fatal(err)
		}
		if line := forbidden(string(log)); line != "" {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// schedule creates a pod and waits until its scheduler has bound it and recorded the event.
func schedule(t *testing.T, client *kubernetes.Clientset, scheduler, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			Containers:    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:2.0"}},
		},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName == "" {
			return fmt.Sprintf("the pod %s is not bound: %v, %+v", name, err, pod.Status)
		}
		events, err := client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Regarding.UID == pod.UID && e.Reason == "Scheduled" {
				if e.ReportingController != scheduler {
					t.Errorf("%s was bound by %s, not %s", name, e.ReportingController, scheduler)
				}
				return ""
			}
		}
		return "no event says who bound " + name
	})
}

// forbidden returns the first line of a log about a missing permission.
func forbidden(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "is forbidden") || strings.Contains(line, "forbidden:") ||
			strings.Contains(line, "Unauthorized") {
			return line
		}
	}
	return ""
}

// room is the capacity of a node.
var room = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
	corev1.ResourcePods: resource.MustParse("1000"),
}

// makeNode creates a node that exists only as an object, ready for pods.
func makeNode(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = room
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// startScheduler runs the default scheduler as its own user.
func (c *cluster) startScheduler(t *testing.T) *component {
	t.Helper()
	c.sh(t, "bowsprit kubeconfig --user system:kube-scheduler > kube-scheduler.conf")
	return c.runScheduler(t)
}

// runScheduler is startScheduler with an existing kubeconfig.
func (c *cluster) runScheduler(t *testing.T) *component {
	t.Helper()
	return c.run(t, "kube-scheduler", "--kubeconfig=kube-scheduler.conf",
		"--authentication-kubeconfig=kube-scheduler.conf", "--authorization-kubeconfig=kube-scheduler.conf",
		"--secure-port="+freePort(t))
}

// TestSchedulersLead runs two processes of a second scheduler, which elect a leader, beside the default scheduler. The
// leader is killed, then the server restarts: pods are bound throughout, each by its own scheduler.
func TestSchedulersLead(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	client := c.client(t)
	makeNode(t, client, "one")
	c.startScheduler(t)
	c.sh(t, `
kubectl create serviceaccount my-scheduler -n kube-system
for role in kube-scheduler volume-scheduler; do
  kubectl create clusterrolebinding my-$role --clusterrole=system:$role --serviceaccount=kube-system:my-scheduler
done
kubectl create rolebinding my-reader -n kube-system --role=extension-apiserver-authentication-reader \
  --serviceaccount=kube-system:my-scheduler
bowsprit kubeconfig > my-scheduler.conf
kubectl config --kubeconfig=my-scheduler.conf set-credentials my-scheduler \
  --token="$(kubectl create token my-scheduler --namespace=kube-system)"
kubectl config --kubeconfig=my-scheduler.conf set-context --current --user=my-scheduler
cat > my-scheduler.yaml <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: my-scheduler.conf}
profiles: [{schedulerName: my-scheduler}]
leaderElection: {leaderElect: true, resourceName: my-scheduler, resourceNamespace: kube-system}
EOF`)
	start := func() *component {
		return c.run(t, "kube-scheduler", "--config=my-scheduler.yaml", "--authentication-kubeconfig=my-scheduler.conf",
			"--authorization-kubeconfig=my-scheduler.conf", "--secure-port="+freePort(t))
	}
	refused := start()
	const text = `leases.coordination.k8s.io \"my-scheduler\" is forbidden` // quoted in a line of its log
	await(t, func(context.Context) string {
		if strings.Contains(refused.log.String(), text) {
			return ""
		}
		return "without the edit of its ClusterRole the scheduler is not refused the Lease: " + refused.log.String()
	})
	refused.kill()
	c.sh(t, `export KUBE_EDITOR="sed -i 's/^  - kube-scheduler$/&\n  - my-scheduler/'"
kubectl edit clusterrole system:kube-scheduler`)

	first := start()
	holder := awaitHolder(t, client, "my-scheduler", "")
	second := start()
	schedule(t, client, "my-scheduler", "by-first")
	first.kill()
	awaitHolder(t, client, "my-scheduler", holder)
	schedule(t, client, "my-scheduler", "by-second")
	schedule(t, client, "default-scheduler", "by-default")

	c.stop(t)
	c.start(t)
	schedule(t, client, "my-scheduler", "by-second-again")
	schedule(t, client, "default-scheduler", "by-default-again")
	if line := forbidden(second.log.String()); line != "" {
		t.Errorf("the second scheduler: %s", line)
	}
}

// awaitHolder waits until the holder of a Lease in kube-system has changed, and returns the new one.
func awaitHolder(t *testing.T, client *kubernetes.Clientset, name, before string) (holder string) {
	t.Helper()
	await(t, func(ctx context.Context) string {
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if h := lease.Spec.HolderIdentity; h != nil && *h != "" && *h != before {
			holder = *h
			return ""
		}
		return "no other holds the Lease " + name
	})
	return holder
}
