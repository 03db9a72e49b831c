// Package kubelettest runs the pods of a test: a fake of nodes, scheduler and kubelet, so that a controller can be
// compared with Kubernetes' own on the same pods.
package kubelettest

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Annotation determines the course of a pod: Succeed, Fail or Hang. Without it, the pod becomes ready.
const Annotation = "bowsprit.dev/test-becomes"

// The courses of pods.
const (
	Succeed = "succeeded"
	Fail    = "failed"
	// Hang leaves a pod pending.
	Hang = "hanging"
)

// Start has all pods of a server run until the test ends.
func Start(t testing.TB, config *rest.Config) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			run(ctx, client)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// run watches pods until the watch ends.
func run(ctx context.Context, client kubernetes.Interface) {
	all := true
	w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{
		SendInitialEvents: &all, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true,
	})
	if err != nil {
		return
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		pod, ok := ev.Object.(*corev1.Pod)
		if !ok || ev.Type == watch.Deleted || ev.Type == watch.Bookmark {
			continue
		}
		step(ctx, client, pod)
	}
}

// step performs a kubelet's next step with a pod.
func step(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) {
	pods := client.CoreV1().Pods(pod.Namespace)
	now := metav1.Now()
	switch becomes := pod.Annotations[Annotation]; {
	case pod.DeletionTimestamp != nil:
		none := int64(0)
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			return // the test then fails waiting, with the reason
		}
	case becomes == Hang || pod.Status.Phase != corev1.PodPending:
	case becomes == Succeed:
		report(ctx, pods, pod, corev1.PodSucceeded, terminated(pod, 0, now))
	case becomes == Fail:
		report(ctx, pods, pod, corev1.PodFailed, terminated(pod, 3, now))
	default:
		report(ctx, pods, pod, corev1.PodRunning, running(pod, now))
	}
}

func terminated(pod *corev1.Pod, code int32, at metav1.Time) (out []corev1.ContainerStatus) {
	for _, c := range pod.Spec.Containers {
		out = append(out, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at, FinishedAt: at},
		}})
	}
	return out
}

func running(pod *corev1.Pod, at metav1.Time) (out []corev1.ContainerStatus) {
	for _, c := range pod.Spec.Containers {
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	return out
}

// patcher is the part of a client that report needs.
type patcher interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions,
		subresources ...string) (*corev1.Pod, error)
}

// report writes the status of a pod. A failure shows in the outcome of the test.
func report(
	ctx context.Context, pods patcher, pod *corev1.Pod, phase corev1.PodPhase, containers []corev1.ContainerStatus,
) {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": corev1.PodStatus{
		Phase: phase, ContainerStatuses: containers, PodIP: "10.0.0.9", PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}},
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now(),
		}},
	}})
	if err != nil {
		return
	}
	_, _ = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
}
