package node

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ownControllers are the controllers of bowsprit that stay on beside a kube-controller-manager, which has them switched
// off.
const ownControllers = "--controllers=bootstrap-signer-controller,token-cleaner-controller,-*"

// TestNodesPage runs docs/nodes.md.
func TestNodesPage(t *testing.T) {
	t.Parallel()
	c := startCluster(t, ownControllers)
	c.runPage(t, "nodes.md", map[string]string{
		"--secure-port=10257": "--secure-port=" + freePort(t), "--secure-port=10259": "--secure-port=" + freePort(t),
	})
	if t.Failed() {
		t.Log(c.sh(t, "cat kube-controller-manager.log kube-scheduler.log"))
	}
}

// startControllers runs kube-controller-manager as its own user; each of its controllers has a service account. Nodes
// that exist only as objects have no kubelet to renew their leases.
func (c *cluster) startControllers(t *testing.T, flags ...string) *component {
	t.Helper()
	c.sh(t, "bowsprit kubeconfig --user system:kube-controller-manager > kube-controller-manager.conf")
	return c.runControllers(t, flags...)
}

// runControllers is startControllers with an existing kubeconfig.
func (c *cluster) runControllers(t *testing.T, flags ...string) *component {
	t.Helper()
	const pki = ".local/share/bowsprit/pki/"
	return c.run(t, "kube-controller-manager", append([]string{
		"--kubeconfig=kube-controller-manager.conf", "--authentication-kubeconfig=kube-controller-manager.conf",
		"--authorization-kubeconfig=kube-controller-manager.conf", "--use-service-account-credentials",
		"--service-account-private-key-file=" + pki + "service-account.key", "--root-ca-file=" + pki + "ca.crt",
		"--cluster-signing-cert-file=" + pki + "ca.crt", "--cluster-signing-key-file=" + pki + "ca.key",
		"--node-monitor-grace-period=24h", "--secure-port=" + freePort(t),
	}, flags...)...)
}

// TestControllerManager runs Kubernetes' own controllers and scheduler: workloads, the default content of namespaces,
// endpoints, garbage collection, deletion of namespaces. Then their leader is killed, and finally the server restarts.
// No request of theirs is refused.
func TestControllerManager(t *testing.T) {
	t.Parallel()
	c := startCluster(t, ownControllers)
	client := c.client(t)
	for _, name := range []string{"one", "two"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Allocatable = room
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scheduler := c.startScheduler(t)
	first := c.startControllers(t)
	holder := awaitHolder(t, client, "kube-controller-manager", "")
	second := c.startControllers(t)

	w := &workload{client: client, namespace: "work"}
	w.begin(t)
	w.deploy(t, "web")
	w.expose(t, "web")
	w.job(t, "once")
	w.undeploy(t, "web")
	w.end(t)

	first.kill()
	awaitHolder(t, client, "kube-controller-manager", holder)
	w.namespace = "after-the-leader"
	w.begin(t)
	w.deploy(t, "web")

	c.stop(t)
	c.start(t)
	w.namespace = "after-the-server"
	w.begin(t)
	w.deploy(t, "web")
	w.undeploy(t, "web")
	w.end(t)
	for name, p := range map[string]*component{"first": first, "second": second, "kube-scheduler": scheduler} {
		if line := forbidden(p.log.String()); line != "" {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// workload is a namespace with work for controllers. It also plays the kubelets.
type workload struct {
	client    *kubernetes.Clientset
	namespace string
}

// begin creates the namespace and waits for its default content.
func (w *workload) begin(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if _, err := w.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		_, account := w.client.CoreV1().ServiceAccounts(w.namespace).Get(ctx, "default", metav1.GetOptions{})
		_, root := w.client.CoreV1().ConfigMaps(w.namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if account != nil || root != nil {
			return fmt.Sprintf("the new namespace lacks something: %v, %v", account, root)
		}
		return ""
	})
}

// end deletes the namespace and waits until it is gone.
func (w *workload) end(t *testing.T) {
	t.Helper()
	if err := w.client.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		w.report(ctx, "", corev1.PodSucceeded)
		ns, err := w.client.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the namespace is still there: %v, %+v", err, ns)
	})
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
	}
}

// deploy creates a Deployment of three replicas and waits until all are bound, running and counted.
func (w *workload) deploy(t *testing.T, app string) {
	t.Helper()
	replicas := int32(3)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: template(app),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	if _, err := w.client.AppsV1().Deployments(w.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		w.report(ctx, app, corev1.PodRunning)
		d, err := w.client.AppsV1().Deployments(w.namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil || d.Status.AvailableReplicas != replicas || d.Status.ObservedGeneration != d.Generation {
			return fmt.Sprintf("the Deployment is not available: %v, %+v", err, d.Status)
		}
		return ""
	})
}

// undeploy deletes a Deployment and waits until the garbage collector has deleted its dependents.
func (w *workload) undeploy(t *testing.T, app string) {
	t.Helper()
	err := w.client.AppsV1().Deployments(w.namespace).Delete(t.Context(), app, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		w.report(ctx, app, corev1.PodSucceeded)
		opts := metav1.ListOptions{LabelSelector: "app=" + app}
		sets, err := w.client.AppsV1().ReplicaSets(w.namespace).List(ctx, opts)
		if err != nil {
			return err.Error()
		}
		pods, err := w.client.CoreV1().Pods(w.namespace).List(ctx, opts)
		if err != nil {
			return err.Error()
		}
		if len(sets.Items)+len(pods.Items) > 0 {
			return fmt.Sprintf("%d ReplicaSets and %d pods are left", len(sets.Items), len(pods.Items))
		}
		return ""
	})
}

// expose creates a Service and waits until its EndpointSlice has the three pods.
func (w *workload) expose(t *testing.T, app string) {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if _, err := w.client.CoreV1().Services(w.namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		slices, err := w.client.DiscoveryV1().EndpointSlices(w.namespace).List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + app})
		if err != nil {
			return err.Error()
		}
		ready := 0
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != 3 {
			return fmt.Sprintf("the Service has %d endpoints that are ready", ready)
		}
		return ""
	})
}

// job creates a Job and waits until it is complete.
func (w *workload) job(t *testing.T, app string) {
	t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: batchv1.JobSpec{Template: template(app)}}
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := w.client.BatchV1().Jobs(w.namespace).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) string {
		w.report(ctx, app, corev1.PodSucceeded)
		j, err := w.client.BatchV1().Jobs(w.namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprintf("the Job is not complete: %+v", j.Status)
	})
}

// report plays the kubelet for the bound pods of an app, or for all: it sets their phase, or removes them once they are
// being deleted. The caller retries failures.
func (w *workload) report(ctx context.Context, app string, phase corev1.PodPhase) {
	opts, now := metav1.ListOptions{}, int64(0)
	if app != "" {
		opts.LabelSelector = "app=" + app
	}
	pods, err := w.client.CoreV1().Pods(w.namespace).List(ctx, opts)
	if err != nil {
		return
	}
	for i, p := range pods.Items {
		ready := corev1.ConditionFalse
		if phase == corev1.PodRunning {
			ready = corev1.ConditionTrue
		}
		switch {
		case p.Spec.NodeName == "":
		case p.DeletionTimestamp != nil:
			_ = w.client.CoreV1().Pods(w.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		case p.Status.Phase != phase:
			p.Status.Phase = phase
			p.Status.PodIP = fmt.Sprintf("10.1.0.%d", i+1)
			p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now(),
			})
			_, _ = w.client.CoreV1().Pods(w.namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
		}
	}
}
