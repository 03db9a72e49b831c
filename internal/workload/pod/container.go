package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// kind is the kind of a container in its pod.
type kind int

const (
	plain kind = iota
	initContainer
	sidecarContainer
	ephemeral
)

// stateOf returns the next state of a container.
type stateOf func(c *corev1.Container, was *corev1.ContainerStatus, k kind) corev1.ContainerState

// containers advances the state of each container.
func (l *life) containers(state stateOf) {
	old := l.status.InitContainerStatuses
	l.status.InitContainerStatuses = nil
	for i := range l.pod.Spec.InitContainers {
		c, k := &l.pod.Spec.InitContainers[i], initContainer
		if sidecar(c) {
			k = sidecarContainer
		}
		l.status.InitContainerStatuses = append(l.status.InitContainerStatuses, l.container(c, k, old, state))
	}
	old = l.status.ContainerStatuses
	l.status.ContainerStatuses = nil
	for i := range l.pod.Spec.Containers {
		one := l.container(&l.pod.Spec.Containers[i], plain, old, state)
		l.status.ContainerStatuses = append(l.status.ContainerStatuses, one)
	}
	old = l.status.EphemeralContainerStatuses
	l.status.EphemeralContainerStatuses = nil
	for i := range l.pod.Spec.EphemeralContainers {
		c := corev1.Container(l.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		one := l.container(&c, ephemeral, old, state)
		l.status.EphemeralContainerStatuses = append(l.status.EphemeralContainerStatuses, one)
	}
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// container returns the status of a container in its next state.
func (l *life) container(
	c *corev1.Container, k kind, old []corev1.ContainerStatus, state stateOf,
) corev1.ContainerStatus {
	one := corev1.ContainerStatus{Name: c.Name}
	for i := range old {
		if old[i].Name == c.Name {
			one = old[i]
		}
	}
	one.Image = c.Image
	one.State = state(c, &one, k)
	l.finish(c, &one, k)
	return one
}

// finish sets the fields that follow from the state of a container.
func (l *life) finish(c *corev1.Container, s *corev1.ContainerStatus, k kind) {
	running := s.State.Running != nil
	if k != ephemeral { // ephemeral containers do not count for readiness
		s.Started = &running
		s.Ready = running && !l.schedule.unready(c.Name) && k != initContainer ||
			k == initContainer && succeeded(s.State)
	}
	if running || s.State.Terminated != nil {
		s.ImageID = c.Image
		s.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", l.pod.UID, c.Name, s.RestartCount)
	}
	if t := s.State.Terminated; t != nil && !t.StartedAt.IsZero() {
		t.ContainerID = s.ContainerID
	}
}

// succeeded reports whether a container has ended well.
func succeeded(s corev1.ContainerState) bool {
	return s.Terminated != nil && s.Terminated.ExitCode == 0
}
