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

// unit is a container of a pod with its status. The status is also the record of the container's runs: State is the
// present run or the last one, LastTerminationState the one before, or the last one of a container that waits.
type unit struct {
	*corev1.ContainerStatus
	spec *corev1.Container
	kind kind
	// granted are the resources that the kubelet has allocated. They differ from the spec's during a resize.
	granted corev1.ResourceRequirements
	// ended is set if the container has ended in this step. Its restart is a step of its own, so clients see the end.
	ended bool
}

// units are the containers of a pod: init containers, containers and ephemeral containers, in this order.
type units struct {
	pod *corev1.Pod
	all []unit
}

// gather makes the units of the pod.
func (l *life) gather() {
	spec, s := &l.pod.Spec, l.status
	l.all = make([]unit, 0, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	old := s.InitContainerStatuses
	s.InitContainerStatuses = make([]corev1.ContainerStatus, len(spec.InitContainers))
	for i := range spec.InitContainers {
		k := initContainer
		if sidecar(&spec.InitContainers[i]) {
			k = sidecarContainer
		}
		l.unit(&spec.InitContainers[i], k, old, &s.InitContainerStatuses[i])
	}
	old = s.ContainerStatuses
	s.ContainerStatuses = make([]corev1.ContainerStatus, len(spec.Containers))
	for i := range spec.Containers {
		l.unit(&spec.Containers[i], plain, old, &s.ContainerStatuses[i])
	}
	old = s.EphemeralContainerStatuses
	s.EphemeralContainerStatuses = make([]corev1.ContainerStatus, len(spec.EphemeralContainers))
	for i := range spec.EphemeralContainers {
		c := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		l.unit(c, ephemeral, old, &s.EphemeralContainerStatuses[i])
	}
}

// unit adds a container with its status, its old one or the status of a container that has never run.
func (l *life) unit(c *corev1.Container, k kind, old []corev1.ContainerStatus, s *corev1.ContainerStatus) {
	for i := range old {
		if old[i].Name == c.Name {
			*s = old[i]
			break
		}
	}
	if s.Name == "" {
		*s = corev1.ContainerStatus{Name: c.Name, VolumeMounts: mounts(c)}
	}
	u := unit{ContainerStatus: s, spec: c, kind: k, granted: c.Resources}
	if s.State == (corev1.ContainerState{}) {
		s.State = l.idle()
	}
	if s.ContainerID == "" {
		s.Image = c.Image
	}
	if s.Resources != nil {
		u.granted = *s.Resources
	}
	l.all = append(l.all, u)
}

// idle is the state of a container that nothing has happened to.
func (us *units) idle() corev1.ContainerState {
	if len(us.pod.Spec.InitContainers) > 0 {
		return waiting("PodInitializing", "")
	}
	return waiting("ContainerCreating", "")
}

// mounts returns the status of a container's volume mounts.
func mounts(c *corev1.Container) []corev1.VolumeMountStatus {
	if len(c.VolumeMounts) == 0 {
		return nil
	}
	out := make([]corev1.VolumeMountStatus, len(c.VolumeMounts))
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		out[i] = corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			out[i].RecursiveReadOnly = &mode
		}
	}
	return out
}

func (us *units) inits() []unit { return us.all[:len(us.pod.Spec.InitContainers)] }

func (us *units) mains() []unit {
	n := len(us.pod.Spec.InitContainers)
	return us.all[n : n+len(us.pod.Spec.Containers)]
}

func (us *units) debuggers() []unit {
	return us.all[len(us.pod.Spec.InitContainers)+len(us.pod.Spec.Containers):]
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// running reports whether the container runs.
func (u *unit) running() bool { return u.State.Running != nil }

// exit returns the end of the last run of a container that does not run; nil if it has never run or its runs were
// removed to restart all containers.
func (u *unit) exit() *corev1.ContainerStateTerminated {
	switch {
	case u.running():
		return nil
	case u.State.Terminated != nil:
		return u.State.Terminated
	case u.ContainerID == "":
		return nil
	}
	return u.LastTerminationState.Terminated
}

// ran reports whether the container runs or has run.
func (u *unit) ran() bool { return u.running() || u.exit() != nil }

// finish derives the other fields of a status from the container's state. Source: pkg/kubelet/prober of Kubernetes
// 1.36, UpdatePodStatus, with probes that succeed at once.
func (l *life) finish(u *unit) {
	if u.kind == ephemeral { // ephemeral containers have no probes
		return
	}
	running := u.running()
	u.Started = &running
	switch u.kind {
	case initContainer:
		u.Ready = u.State.Terminated != nil && u.State.Terminated.ExitCode == 0
	default:
		u.Ready = running && !l.schedule.unready(u.Name)
	}
}

// identify sets the fields of a status that name the present or last run.
func (l *life) identify(u *unit) {
	u.Image, u.ImageID = u.spec.Image, u.spec.Image
	u.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", l.pod.UID, u.Name, u.RestartCount)
}
