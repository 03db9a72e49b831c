package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// replicas is the number of the Deployment's pods, historyLimit its number of former ReplicaSets, which is the default.
const replicas, historyLimit = 20, 10

// TestKillRollout kills a server that simulates workloads in the middle of rollouts, each of a new template. After a
// restart the server finishes them: all pods have the last template, and their number is right. E2E_ROLLOUTS is the
// number of rollouts (make kill-rollouts).
func TestKillRollout(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("E2E_ROLLOUTS")); err == nil {
		rounds = n
	}
	flags := []string{"--data-dir=" + t.TempDir(), "--simulate=nodes=3", withoutAccounts}
	server := startServer(t, flags...)
	client := kubernetes.NewForConfigOrDie(server.config(t))
	ctx := bounded(t, startLimit)
	d := createWeb(ctx, t, client)
	untilDeployment(ctx, t, client, rolledOut)
	for round := range rounds {
		ctx := bounded(t, startLimit)
		image := fmt.Sprintf("registry.example.com/web:%d", round+1)
		d = updateImage(ctx, t, client, d, image)
		under := untilDeployment(ctx, t, client, rollingOut)
		server.kill()
		t.Logf("round %d: killed with %d of %d pods updated", round, under.Status.UpdatedReplicas, replicas)
		server = startServer(t, flags...)
		client = kubernetes.NewForConfigOrDie(server.config(t))
		untilDeployment(ctx, t, client, rolledOut)
		checkRollout(ctx, t, client, image)
		checkHistory(ctx, t, client, min(round+2, 1+historyLimit))
	}
}

// createWeb makes the Deployment web of so many replicas.
func createWeb(ctx context.Context, t *testing.T, client kubernetes.Interface) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "web"}
	d, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:0"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// updateImage begins a rollout, and returns the updated Deployment.
func updateImage(
	ctx context.Context, t *testing.T, client kubernetes.Interface, d *appsv1.Deployment, image string,
) *appsv1.Deployment {
	t.Helper()
	d.Spec.Template.Spec.Containers[0].Image = image
	d.ResourceVersion = "" // whatever its status is by now
	d, err := client.AppsV1().Deployments("default").Update(ctx, d, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rollingOut is the state in the middle of a rollout, or behind it, and rolledOut that at its end.
func rollingOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas > 0
}

func rolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == replicas &&
		d.Status.AvailableReplicas == replicas && d.Status.Replicas == replicas
}

// untilDeployment waits until the Deployment is in a state, and returns it.
func untilDeployment(
	ctx context.Context, t *testing.T, client kubernetes.Interface, is func(*appsv1.Deployment) bool,
) *appsv1.Deployment {
	t.Helper()
	w, err := client.AppsV1().Deployments("default").Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "web").String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var last *appsv1.Deployment
	for ev := range w.ResultChan() {
		if d, ok := ev.Object.(*appsv1.Deployment); ok {
			if last = d; is(d) {
				return d
			}
		}
	}
	t.Fatalf("the watch has ended; last seen: %+v", last)
	return nil
}

// checkRollout checks the objects after a finished rollout.
func checkRollout(ctx context.Context, t *testing.T, client kubernetes.Interface, image string) {
	t.Helper()
	sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		want := 0
		if set.Spec.Template.Spec.Containers[0].Image == image {
			want = replicas
		}
		if int(*set.Spec.Replicas) != want {
			t.Errorf("%s wants %d pods instead of %d", set.Name, *set.Spec.Replicas, want)
		}
	}
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there, addresses := 0, map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if there++; pod.Spec.Containers[0].Image != image {
			t.Errorf("%s runs %s", pod.Name, pod.Spec.Containers[0].Image)
		}
		if other := addresses[pod.Status.PodIP]; other != "" {
			t.Errorf("%s and %s have the address %s", pod.Name, other, pod.Status.PodIP)
		}
		addresses[pod.Status.PodIP] = pod.Name
	}
	if there != replicas {
		t.Errorf("%d pods, want %d", there, replicas)
	}
}

// checkHistory waits until the number of ReplicaSets is the history and the current template: the controller deletes
// old ones when it sees the finished rollout. Revisions increase, and no two are equal.
func checkHistory(ctx context.Context, t *testing.T, client kubernetes.Interface, want int) {
	t.Helper()
	sets := client.AppsV1().ReplicaSets("default")
	list, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revisions := map[string]string{}
	for _, set := range list.Items {
		revisions[set.Name] = set.Annotations["deployment.kubernetes.io/revision"]
	}
	if len(revisions) > want {
		w, err := sets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for len(revisions) > want {
			ev, ok := <-w.ResultChan()
			if !ok {
				t.Fatalf("%d ReplicaSets, want %d: %v", len(revisions), want, revisions)
			}
			if set, is := ev.Object.(*appsv1.ReplicaSet); is && ev.Type == watch.Deleted {
				delete(revisions, set.Name)
			}
		}
	}
	if len(revisions) != want {
		t.Errorf("%d ReplicaSets, want %d: %v", len(revisions), want, revisions)
	}
	by := map[string]string{}
	for name, revision := range revisions {
		if by[revision] != "" {
			t.Errorf("%s and %s are both revision %s", name, by[revision], revision)
		}
		by[revision] = name
	}
}
