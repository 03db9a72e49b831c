package testserver_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkDeployment creates a Deployment on a server that simulates workloads and watches until all of its pods are
// available.
func BenchmarkDeployment(b *testing.B) {
	for _, replicas := range []int32{1, 10, 1000} {
		b.Run(fmt.Sprintf("pods=%d", replicas), func(b *testing.B) {
			server := testserver.Start(b, testserver.WithWorkloads("nodes=10", "pods=100000", "cpu=100000"))
			config := server.RESTConfig()
			config.QPS = -1
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				b.Fatal(err)
			}
			deployments := client.AppsV1().Deployments("default")
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprintf("d%d", i)
				made, err := deployments.Create(b.Context(), deployment(name, replicas), metav1.CreateOptions{})
				if err != nil {
					b.Fatal(err)
				}
				w, err := deployments.Watch(b.Context(), metav1.ListOptions{
					FieldSelector: "metadata.name=" + name, ResourceVersion: made.ResourceVersion,
				})
				if err != nil {
					b.Fatal(err)
				}
				for ev := range w.ResultChan() {
					if d, ok := ev.Object.(*appsv1.Deployment); ok && d.Status.AvailableReplicas == replicas {
						break
					}
				}
				w.Stop()
			}
		})
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}
