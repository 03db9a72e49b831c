package podlog

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Exec implements kubelet.Simulation. The answers of commands stand in annotations of the pod; no program runs.
func (l *Logs) Exec(pod *corev1.Pod, container string, command []string) (kubelet.Process, error) {
	if err := l.runs(pod, container); err != nil {
		return nil, err
	}
	all, there, err := answersOf(pod, container)
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case !there:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("node %s is simulated: it runs no containers. The annotation %s of "+
			"the pod gives the answers of commands", pod.Spec.NodeName, execs))
	}
	a := find(all, command)
	return func(_ context.Context, to kubelet.Streams) (int, error) {
		stderr := to.Stderr
		if to.TTY {
			stderr = to.Stdout
		}
		if _, err := io.WriteString(to.Stdout, a.Stdout); err != nil {
			return 0, err
		}
		if _, err := io.WriteString(stderr, a.Stderr); err != nil {
			return 0, err
		}
		return a.ExitCode, nil
	}, nil
}

// Attach implements kubelet.Simulation. The client receives the lines that the container writes from now on.
func (l *Logs) Attach(pod *corev1.Pod, container string) (kubelet.Process, error) {
	if err := l.runs(pod, container); err != nil {
		return nil, err
	}
	return func(ctx context.Context, to kubelet.Streams) (int, error) {
		now := metav1.NewTime(l.cluster.Now())
		log, err := l.Log(ctx, pod, container, &corev1.PodLogOptions{Follow: true, SinceTime: &now})
		if err != nil {
			return 0, err
		}
		defer log.Close()
		_, err = io.Copy(to.Stdout, log)
		return 0, err
	}, nil
}

// runs returns the kubelet's error if a container does not run.
func (l *Logs) runs(pod *corev1.Pod, container string) error {
	node := pod.Spec.NodeName
	if cluster.IsDown(l.cluster.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", node)) {
		return fmt.Errorf("dial tcp %s:10250: i/o timeout", cluster.NodeAddress(node))
	}
	if s := statusOf(pod, container); s == nil || s.State.Running == nil {
		return apierrors.NewInternalError(fmt.Errorf("unable to upgrade connection: container not found (%q)", container))
	}
	return nil
}
