package pod

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// deferred is set if a resize waits for room on the node.
	deferred bool
}

// event is a kubelet's event about the pod or one of its containers.
type event struct {
	cluster.Event
	container string // with the name of its list, such as "spec.containers{main}"
}

var errDeleted = errors.New("the pod is being deleted")

// life is a pod at a time.
type life struct {
	units
	now      time.Time
	schedule schedule
	host     host
	memory   *memory
	resets   bool // all containers are to be restarted
	late     bool // the pod has run for too long
	// pullFailed is set by a failed image pull of this step, sandboxed if the pod has had a sandbox in it.
	pullFailed, sandboxed bool
	step
}

// next returns the next step of a pod on a healthy node. It changes m.
func next(pod *corev1.Pod, now time.Time, h host, m *memory) step {
	l := &life{
		units: units{pod: pod}, now: now, schedule: scheduleOf(pod), host: h, memory: m,
		step: step{status: pod.Status.DeepCopy()},
	}
	switch {
	case over(pod):
		l.gone = pod.DeletionTimestamp != nil
		return l.step
	case pod.DeletionTimestamp != nil:
		l.gather()
		l.end()
	default:
		l.gather()
		l.live()
	}
	byName := func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(l.status.ContainerStatuses, byName)
	slices.SortStableFunc(l.status.EphemeralContainerStatuses, byName)
	l.changed = !equal(&pod.Status, l.status)
	return l.step
}

func over(pod *corev1.Pod) bool { return isTerminal(pod.Status.Phase) }

func isTerminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
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
	sandbox := conditionOf(&l.pod.Status, corev1.PodReadyToStartContainers)
	if sandbox == nil || sandbox.Status != corev1.ConditionTrue {
		if !l.mount() {
			l.settle(false)
			return
		}
	}
	l.sandboxed = true
	l.resize()
	if left := s.StartTime.Add(l.schedule.startDelay).Sub(l.now); left > 0 {
		l.again(left)
	} else {
		l.sync()
	}
	if isTerminal(l.phase(false)) {
		l.finalize()
		return
	}
	l.settle(true)
}

// again has the pod looked at after a while, or before.
func (l *life) again(d time.Duration) {
	if d = max(1, d); l.wait == 0 || d < l.wait {
		l.wait = d
	}
}

// end ends the containers of a pod that is being deleted: sidecars after the other containers, in reverse order.
func (l *life) end() {
	l.expire()
	grace := time.Duration(0)
	if s := l.pod.DeletionGracePeriodSeconds; s != nil {
		grace = cluster.Seconds(*s)
	}
	requested := l.pod.DeletionTimestamp.Add(-grace)
	due, left := l.schedule.stopTime, time.Duration(0)
	for _, u := range l.stopOrder() {
		if !u.running() {
			continue
		}
		if u.kind == sidecarContainer {
			due += l.schedule.stopTime
		}
		if !l.memory.stopping {
			l.recordEvent(u.spec, corev1.EventTypeNormal, "Killing", "Stopping container %s", u.Name)
		}
		if more := requested.Add(min(grace, due)).Sub(l.now); more > 0 {
			left = more
			l.again(more)
			continue
		}
		l.exit(u, l.interrupted(u))
	}
	l.memory.stopping = true
	l.resets = l.resetCause() != nil // shown, although nothing is restarted
	if left > 0 {
		l.unwait()
		l.settle(true)
		return
	}
	l.gone = true
	l.unwait()
	l.finalize()
}

// unwait gives containers that wait for their restart the state of their last run: a deleted pod restarts none.
func (l *life) unwait() {
	for i := range l.all {
		if u := &l.all[i]; u.State.Waiting != nil {
			if exit := u.exit(); exit != nil {
				u.State = corev1.ContainerState{Terminated: exit}
			} else {
				u.State = l.idle()
			}
		}
	}
}

// exceed ends a pod that has run for too long.
func (l *life) exceed() {
	l.late = true
	l.expire()
	l.stop()
	l.status.Reason = "DeadlineExceeded"
	l.status.Message = "Pod was active on the node longer than the specified deadline"
	l.finalize()
	l.events = append(l.events, event{Event: cluster.Event{
		Type: corev1.EventTypeNormal, Reason: "DeadlineExceeded", Message: l.status.Message,
	}})
}

// finalize completes the status of a pod that runs no containers and will run none. Source: TerminatePod of
// pkg/kubelet/status of Kubernetes 1.36.
func (l *life) finalize() {
	l.wait = 0
	l.settle(false)
	if l.hasInitialized() {
		for i := range l.mains() {
			lose(&l.mains()[i])
		}
	}
	seen := min(1, len(l.inits())) // init containers that may have run
	for i := range l.inits() {
		if u := &l.inits()[i]; u.State.Waiting == nil || u.LastTerminationState.Terminated != nil {
			seen = i + 1
		}
	}
	for i := range l.inits()[:seen] {
		lose(&l.inits()[i])
	}
	if !isTerminal(l.status.Phase) {
		l.status.Phase = corev1.PodFailed
	}
}

// lose ends a container with an unknown result, unless it has ended.
func lose(u *unit) {
	if u.State.Terminated == nil {
		u.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown",
			Message: "The container could not be located when the pod was terminated",
		}}
	}
}

// hasInitialized reports whether the init containers have ever been done.
func (us *units) hasInitialized() bool {
	inits := us.inits()
	if len(inits) == 0 {
		return true
	}
	for i := range us.mains() {
		if u := &us.mains()[i]; u.LastTerminationState.Terminated != nil || u.State.Waiting == nil {
			return true
		}
	}
	last := &inits[len(inits)-1]
	if last.kind == sidecarContainer {
		return last.running()
	}
	return succeeded(last.State) || succeeded(last.LastTerminationState)
}

// succeeded reports whether a container has ended well.
func succeeded(s corev1.ContainerState) bool {
	return s.Terminated != nil && s.Terminated.ExitCode == 0
}

func (l *life) recordEvent(c *corev1.Container, kind, reason, format string, args ...any) {
	l.events = append(l.events, event{
		Event:     cluster.Event{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)},
		container: l.path(c),
	})
}

// path returns the path of a container in its pod, for events.
func (us *units) path(c *corev1.Container) string {
	for i := range us.all {
		u := &us.all[i]
		if u.spec != c {
			continue
		}
		switch u.kind {
		case initContainer, sidecarContainer:
			return "spec.initContainers{" + c.Name + "}"
		case ephemeral:
			return "spec.ephemeralContainers{" + c.Name + "}"
		}
	}
	return "spec.containers{" + c.Name + "}"
}

// report records an event about the pod.
func (l *life) report(kind, reason, format string, args ...any) {
	l.events = append(l.events, event{
		Event: cluster.Event{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)},
	})
}
