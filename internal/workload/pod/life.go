package pod

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// step is the next transition of a pod.
type step struct {
	status  *corev1.PodStatus
	changed bool // the status differs from the pod's
	events  []event
	wait    time.Duration // until the next step; 0 means not before the pod changes
	gone    bool          // the pod has ended and is to be deleted
}

// event is a kubelet's event about the pod or one of its containers.
type event struct {
	cluster.Event
	container string
}

var errDeleted = errors.New("the pod is being deleted")

// life is a pod at a time.
type life struct {
	pod      *corev1.Pod
	now      time.Time
	schedule schedule
	step
}

// next returns the next step of a pod on a healthy node.
func next(pod *corev1.Pod, now time.Time) step {
	l := &life{pod: pod, now: now, schedule: scheduleOf(pod), step: step{status: pod.Status.DeepCopy()}}
	switch {
	case pod.DeletionTimestamp != nil:
		l.end()
	case over(pod):
	default:
		l.live()
	}
	l.changed = !equal(&pod.Status, l.status)
	return l.step
}

func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// live advances a pod that is not being deleted by one step.
func (l *life) live() {
	s := l.status
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: l.now}
	}
	if most := l.pod.Spec.ActiveDeadlineSeconds; most != nil {
		left := s.StartTime.Add(cluster.Seconds(*most)).Sub(l.now)
		if left <= 0 {
			l.exceed()
			return
		}
		l.again(left)
	}
	if left := s.StartTime.Add(l.schedule.startDelay).Sub(l.now); left > 0 {
		l.again(left)
		l.containers(func(*corev1.Container, *corev1.ContainerStatus, kind) corev1.ContainerState {
			if len(l.pod.Spec.InitContainers) > 0 {
				return waiting("PodInitializing", "")
			}
			return waiting("ContainerCreating", "")
		})
	} else {
		l.containers(l.advance)
	}
	l.settle()
}

// again has the pod looked at after a while, or before.
func (l *life) again(d time.Duration) {
	if d = max(1, d); l.wait == 0 || d < l.wait {
		l.wait = d
	}
}

// advance returns the next state of a container.
func (l *life) advance(c *corev1.Container, was *corev1.ContainerStatus, k kind) corev1.ContainerState {
	state := was.State
	switch {
	case state.Terminated != nil:
		return state
	case state.Running != nil:
		return l.run(c, was, k)
	case l.schedule.pullFailure(c.Name):
		return l.pull(c, state)
	case state.Waiting != nil && state.Waiting.Reason == crashLoop:
		if left := backOff(was.RestartCount) - l.now.Sub(finishedAt(was)); left > 0 {
			l.again(left)
			return state
		}
		was.RestartCount++
	}
	if k != ephemeral && l.initializing(c) {
		return waiting("PodInitializing", "")
	}
	l.recordEvent(c, corev1.EventTypeNormal, "Pulled",
		"Container image %q already present on machine and can be accessed by the pod", c.Image)
	l.recordEvent(c, corev1.EventTypeNormal, "Created", "Container created")
	l.recordEvent(c, corev1.EventTypeNormal, "Started", "Container started")
	at := metav1.Time{Time: l.now}
	how := l.schedule.ending(c, k)
	if k == initContainer && how == (ending{ends: true}) {
		return terminated(0, at, at)
	}
	if how.ends {
		l.again(how.after)
	}
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
}

// initializing reports whether an init container before c is not done.
func (l *life) initializing(c *corev1.Container) bool {
	for i, s := range l.status.InitContainerStatuses {
		before := &l.pod.Spec.InitContainers[i]
		if before.Name == c.Name {
			break
		}
		if sidecar(before) && s.State.Running == nil || !sidecar(before) && !succeeded(s.State) {
			return true
		}
	}
	return false
}

// run returns the next state of a running container, which may end.
func (l *life) run(c *corev1.Container, was *corev1.ContainerStatus, k kind) corev1.ContainerState {
	since := was.State.Running.StartedAt
	how := l.schedule.ending(c, k)
	if !how.ends {
		return was.State
	}
	if left := since.Add(how.after).Sub(l.now); left > 0 {
		l.again(left)
		return was.State
	}
	end := terminated(how.code, since, metav1.Time{Time: l.now})
	if !l.restarts(k, how.code) {
		return end
	}
	end.Terminated.ContainerID = was.ContainerID
	was.LastTerminationState = end
	pause := backOff(was.RestartCount)
	l.recordEvent(c, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)",
		c.Name, l.pod.Name, l.pod.Namespace, l.pod.UID)
	l.again(pause)
	return waiting(crashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		pause, c.Name, l.pod.Name, l.pod.Namespace, l.pod.UID))
}

// restarts reports whether a container that has ended is started again.
func (l *life) restarts(k kind, code int32) bool {
	switch k {
	case ephemeral:
		return false
	case sidecarContainer:
		return true
	case initContainer:
		return code != 0 && l.pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	}
	switch l.pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// pull returns the state of a container with an image that cannot be pulled: a failed pull, then the back-off.
func (l *life) pull(c *corev1.Container, state corev1.ContainerState) corev1.ContainerState {
	if state.Waiting != nil && state.Waiting.Reason == "ImagePullBackOff" {
		return state
	}
	why := fmt.Sprintf("failed to resolve image %q: not found", c.Image)
	if state.Waiting != nil && state.Waiting.Reason == "ErrImagePull" {
		text := fmt.Sprintf("Back-off pulling image %q", c.Image)
		l.recordEvent(c, corev1.EventTypeNormal, "BackOff", "%s", text)
		return waiting("ImagePullBackOff", text+": ErrImagePull: "+why)
	}
	l.recordEvent(c, corev1.EventTypeNormal, "Pulling", "Pulling image %q", c.Image)
	l.recordEvent(c, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", c.Image, why)
	l.recordEvent(c, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
	l.again(1)
	return waiting("ErrImagePull", why)
}

// end ends the containers of a pod that is being deleted.
func (l *life) end() {
	requested := l.pod.DeletionTimestamp.Time
	grace := time.Duration(0)
	if s := l.pod.DeletionGracePeriodSeconds; s != nil {
		grace = cluster.Seconds(*s)
	}
	if left := requested.Add(-grace).Add(min(grace, l.schedule.stopTime)).Sub(l.now); left > 0 && !over(l.pod) {
		for i := range l.pod.Spec.Containers {
			l.recordEvent(&l.pod.Spec.Containers[i], corev1.EventTypeNormal, "Killing", "Stopping container %s",
				l.pod.Spec.Containers[i].Name)
		}
		l.again(left)
		return
	}
	l.gone = true
	if over(l.pod) {
		return
	}
	at := metav1.Time{Time: l.now}
	l.containers(func(c *corev1.Container, was *corev1.ContainerStatus, k kind) corev1.ContainerState {
		switch {
		case was.State.Terminated != nil:
			return was.State
		case was.State.Running == nil:
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown",
				Message: "The container could not be located when the pod was terminated",
			}}
		}
		if l.schedule.stopTime == 0 {
			l.recordEvent(c, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.Name)
		}
		code := int32(0)
		if l.schedule.ending(c, k).ends { // it was interrupted
			code = 143
		}
		return terminated(code, was.State.Running.StartedAt, at)
	})
	l.settle()
}

// exceed ends a pod that has run for too long.
func (l *life) exceed() {
	at := metav1.Time{Time: l.now}
	l.containers(func(_ *corev1.Container, was *corev1.ContainerStatus, _ kind) corev1.ContainerState {
		if was.State.Running != nil {
			return terminated(143, was.State.Running.StartedAt, at)
		}
		return was.State
	})
	l.settle()
	l.status.Phase, l.status.Reason = corev1.PodFailed, "DeadlineExceeded"
	l.status.Message = "Pod was active on the node longer than the specified deadline"
	l.conditions()
	l.events = append(l.events, event{Event: cluster.Event{
		Type: corev1.EventTypeNormal, Reason: "DeadlineExceeded", Message: l.status.Message,
	}})
}

func (l *life) recordEvent(c *corev1.Container, kind, reason, format string, args ...any) {
	l.events = append(l.events, event{
		Event:     cluster.Event{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)},
		container: c.Name,
	})
}

const crashLoop = "CrashLoopBackOff"

// backOff is how long a container waits that has been restarted so often: 10 seconds, doubled each time, 5 minutes at
// most.
func backOff(restarts int32) time.Duration {
	return min(10*time.Second<<min(restarts, 5), 5*time.Minute)
}

func finishedAt(s *corev1.ContainerStatus) time.Time {
	if t := s.LastTerminationState.Terminated; t != nil {
		return t.FinishedAt.Time
	}
	return time.Time{}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(code int32, from, to metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: from, FinishedAt: to,
	}}
}
