package pod

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// step is what happens to a pod next.
type step struct {
	status  *corev1.PodStatus
	changed bool // the status is another than the pod's
	events  []event
	wait    time.Duration // when there is more to do, 0 for not before the pod changes
	gone    bool          // the pod has ended and is to be removed
}

// event is what a kubelet reports, about the pod or one of its containers.
type event struct {
	cluster.Event
	container string
}

var errDeleted = errors.New("the pod is being deleted")

// life is a pod at a time.
type life struct {
	pod  *corev1.Pod
	now  time.Time
	wish wish
	step
}

// next returns what happens to a pod on a node that is well.
func next(pod *corev1.Pod, now time.Time) step {
	l := &life{pod: pod, now: now, wish: wishOf(pod), step: step{status: pod.Status.DeepCopy()}}
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

// live takes a pod that is to run one step on.
func (l *life) live() {
	s := l.status
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: l.now}
	}
	if most := l.pod.Spec.ActiveDeadlineSeconds; most != nil {
		left := s.StartTime.Add(time.Duration(*most) * time.Second).Sub(l.now)
		if left <= 0 {
			l.exceed()
			return
		}
		l.again(left)
	}
	if left := s.StartTime.Add(l.wish.startDelay).Sub(l.now); left > 0 {
		l.again(left)
		l.containers(func(c *corev1.Container, _ *corev1.ContainerStatus, _ bool) corev1.ContainerState {
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

// containers gives each container its state.
func (l *life) containers(
	state func(c *corev1.Container, was *corev1.ContainerStatus, init bool) corev1.ContainerState,
) {
	old := l.status.InitContainerStatuses
	l.status.InitContainerStatuses = nil
	for i := range l.pod.Spec.InitContainers {
		c := &l.pod.Spec.InitContainers[i]
		one := l.container(c, old)
		one.State = state(c, one, !sidecar(c))
		l.finish(c, one)
		l.status.InitContainerStatuses = append(l.status.InitContainerStatuses, *one)
	}
	old = l.status.ContainerStatuses
	l.status.ContainerStatuses = nil
	for i := range l.pod.Spec.Containers {
		c := &l.pod.Spec.Containers[i]
		one := l.container(c, old)
		one.State = state(c, one, false)
		l.finish(c, one)
		l.status.ContainerStatuses = append(l.status.ContainerStatuses, *one)
	}
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// container returns the status of a container as it was, or a new one.
func (l *life) container(c *corev1.Container, old []corev1.ContainerStatus) *corev1.ContainerStatus {
	for i := range old {
		if old[i].Name == c.Name {
			one := old[i]
			one.Image = c.Image
			return &one
		}
	}
	return &corev1.ContainerStatus{Name: c.Name, Image: c.Image}
}

// finish sets what follows from the state of a container.
func (l *life) finish(c *corev1.Container, s *corev1.ContainerStatus) {
	running := s.State.Running != nil
	s.Started = &running
	s.Ready = running && !l.wish.unready(c.Name)
	if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
		s.Ready = l.isInit(c) // an init container that is done is ready
	}
	if running || s.State.Terminated != nil {
		s.ImageID = c.Image
		s.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", l.pod.UID, c.Name, s.RestartCount)
	}
	if t := s.State.Terminated; t != nil && !t.StartedAt.IsZero() {
		t.ContainerID = s.ContainerID
	}
}

func (l *life) isInit(c *corev1.Container) bool {
	return slices.ContainsFunc(l.pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

// advance returns the state of a container after the one that it has.
func (l *life) advance(c *corev1.Container, was *corev1.ContainerStatus, init bool) corev1.ContainerState {
	state := was.State
	switch {
	case state.Terminated != nil:
		return state
	case state.Running != nil:
		return l.run(c, was)
	case l.wish.pullFailure(c.Name):
		return l.pull(c, state)
	case state.Waiting != nil && state.Waiting.Reason == crashLoop:
		if left := backOff(was.RestartCount) - l.now.Sub(finishedAt(was)); left > 0 {
			l.again(left)
			return state
		}
		was.RestartCount++
	}
	if l.initializing(c) {
		return waiting("PodInitializing", "")
	}
	l.say(c, corev1.EventTypeNormal, "Pulled",
		"Container image %q already present on machine and can be accessed by the pod", c.Image)
	l.say(c, corev1.EventTypeNormal, "Created", "Container created")
	l.say(c, corev1.EventTypeNormal, "Started", "Container started")
	at := metav1.Time{Time: l.now}
	if init {
		return terminated(0, at, at)
	}
	state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	if l.wish.ends && !sidecar(c) {
		l.again(l.wish.runTime)
	}
	return state
}

// initializing reports whether an init container before c is not done.
func (l *life) initializing(c *corev1.Container) bool {
	for i, s := range l.status.InitContainerStatuses {
		before := &l.pod.Spec.InitContainers[i]
		if before.Name == c.Name {
			break
		}
		if sidecar(before) && s.State.Running == nil || !sidecar(before) && s.State.Terminated == nil {
			return true
		}
	}
	return false
}

// run returns the state of a container that runs, which may end.
func (l *life) run(c *corev1.Container, was *corev1.ContainerStatus) corev1.ContainerState {
	since := was.State.Running.StartedAt
	if !l.wish.ends || sidecar(c) {
		return was.State
	}
	if left := since.Add(l.wish.runTime).Sub(l.now); left > 0 {
		l.again(left)
		return was.State
	}
	end := terminated(l.wish.code, since, metav1.Time{Time: l.now})
	policy := l.pod.Spec.RestartPolicy
	if policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && l.wish.code == 0 {
		return end
	}
	end.Terminated.ContainerID = was.ContainerID
	was.LastTerminationState = end
	pause := backOff(was.RestartCount)
	l.say(c, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)",
		c.Name, l.pod.Name, l.pod.Namespace, l.pod.UID)
	l.again(pause)
	return waiting(crashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		pause, c.Name, l.pod.Name, l.pod.Namespace, l.pod.UID))
}

// pull returns the state of a container whose image cannot be pulled: it fails, then it is waited for.
func (l *life) pull(c *corev1.Container, state corev1.ContainerState) corev1.ContainerState {
	if state.Waiting != nil && state.Waiting.Reason == "ImagePullBackOff" {
		return state
	}
	why := fmt.Sprintf("failed to resolve image %q: not found", c.Image)
	if state.Waiting != nil && state.Waiting.Reason == "ErrImagePull" {
		text := fmt.Sprintf("Back-off pulling image %q", c.Image)
		l.say(c, corev1.EventTypeNormal, "BackOff", "%s", text)
		return waiting("ImagePullBackOff", text+": ErrImagePull: "+why)
	}
	l.say(c, corev1.EventTypeNormal, "Pulling", "Pulling image %q", c.Image)
	l.say(c, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", c.Image, why)
	l.say(c, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
	l.again(1)
	return waiting("ErrImagePull", why)
}

// end ends the containers of a pod that is being deleted.
func (l *life) end() {
	asked := l.pod.DeletionTimestamp.Time
	grace := time.Duration(0)
	if s := l.pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	if left := asked.Add(-grace).Add(min(grace, l.wish.stopTime)).Sub(l.now); left > 0 && !over(l.pod) {
		for i := range l.pod.Spec.Containers {
			l.say(&l.pod.Spec.Containers[i], corev1.EventTypeNormal, "Killing", "Stopping container %s",
				l.pod.Spec.Containers[i].Name)
		}
		l.again(left)
		return
	}
	l.gone = true
	if over(l.pod) {
		return
	}
	code := int32(0)
	if l.wish.ends { // it was interrupted
		code = 143
	}
	at := metav1.Time{Time: l.now}
	l.containers(func(c *corev1.Container, was *corev1.ContainerStatus, _ bool) corev1.ContainerState {
		switch {
		case was.State.Terminated != nil:
			return was.State
		case was.State.Running == nil:
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown",
				Message: "The container could not be located when the pod was terminated",
			}}
		}
		if l.wish.stopTime == 0 {
			l.say(c, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.Name)
		}
		return terminated(code, was.State.Running.StartedAt, at)
	})
	l.settle()
}

// exceed ends a pod that has run for too long.
func (l *life) exceed() {
	at := metav1.Time{Time: l.now}
	l.containers(func(_ *corev1.Container, was *corev1.ContainerStatus, _ bool) corev1.ContainerState {
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

func (l *life) say(c *corev1.Container, kind, reason, format string, args ...any) {
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
