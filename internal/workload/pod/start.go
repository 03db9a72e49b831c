package pod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const crashLoop = "CrashLoopBackOff"

// Pauses before the restarts of a container: none before the first, then 10 seconds, doubled each time, 5 minutes at
// most. A pause is forgotten 10 minutes after the start that followed it.
const (
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	pauseMemory  = 2 * longestPause
)

// configRetry is the time after which a kubelet syncs a pod again that it could not start.
const configRetry = 10 * time.Second

// memory is a kubelet's memory of a pod: facts that the pod's status does not hold. It is lost when the server ends, as
// a kubelet's is. Its zero value is ready for a new pod.
type memory struct {
	pauses   map[string]pause                 // by pauseKey
	hidden   map[string]corev1.ContainerState // by container: a waiting state that its status does not show
	failures int                              // failed attempts to mount the pod's volumes
	retry    time.Time                        // the next attempt to mount them
	stopping bool                             // the containers have been stopped
}

// pause is the pause before the next restart of a container. start is the time of the last restart.
type pause struct {
	length time.Duration
	start  time.Time
}

func (m *memory) empty() bool {
	return len(m.pauses) == 0 && len(m.hidden) == 0 && m.failures == 0 && !m.stopping
}

// pauseKey names a container and the fields that end its pause when they change.
func pauseKey(c *corev1.Container) string { return c.Name + "/" + c.Image + "/" + c.Resources.String() }

// paused returns the pause of a container that has ended at a time, and the time that is left of it.
func (m *memory) paused(c *corev1.Container, ended, now time.Time) (length, left time.Duration) {
	p, ok := m.pauses[pauseKey(c)]
	if !ok || now.Sub(p.start) > pauseMemory {
		return 0, 0
	}
	return p.length, p.length - now.Sub(ended)
}

// restarted notes the restart of a container.
func (m *memory) restarted(c *corev1.Container, now time.Time) {
	key := pauseKey(c)
	p, ok := m.pauses[key]
	switch {
	case !ok || now.Sub(p.start) > pauseMemory:
		p.length = firstPause
	default:
		p.length = min(2*p.length, longestPause)
	}
	p.start = now
	if m.pauses == nil {
		m.pauses = map[string]pause{}
	}
	m.pauses[key] = p
}

// start starts a container, if its back-off, image and configuration allow it, and reports whether it did. ended is the
// end of its last run, nil if it never ran.
func (l *life) start(u *unit, ended *corev1.ContainerStateTerminated) bool {
	if ended != nil {
		if length, left := l.memory.paused(u.spec, ended.FinishedAt.Time, l.now); left > 0 {
			l.backOff(u, length)
			l.again(left)
			return false
		}
		if u.ended {
			l.again(1)
			return false
		}
	}
	if ended != nil { // even if the start fails
		l.memory.restarted(u.spec, l.now)
	}
	if l.schedule.pullFailure(u.Name) {
		l.pull(u)
		return false
	}
	l.recordEvent(u.spec, corev1.EventTypeNormal, "Pulled",
		"Container image %q already present on machine and can be accessed by the pod", u.spec.Image)
	if problem := l.host.environment(u.spec); problem != "" {
		l.recordEvent(u.spec, corev1.EventTypeWarning, "Failed", "Error: %s", problem)
		l.hold(u, "CreateContainerConfigError", problem)
		l.again(configRetry)
		return false
	}
	l.recordEvent(u.spec, corev1.EventTypeNormal, "Created", "Container created")
	l.recordEvent(u.spec, corev1.EventTypeNormal, "Started", "Container started")
	l.run(u)
	return true
}

// run begins a run of a container.
func (l *life) run(u *unit) {
	delete(l.memory.hidden, u.Name)
	if exit := u.exit(); exit != nil {
		u.LastTerminationState = corev1.ContainerState{Terminated: exit}
		u.RestartCount++
	} else if last := u.LastTerminationState.Terminated; last != nil && !removed(last) { // removed while it waited
		u.RestartCount++
	}
	at := metav1.Time{Time: l.now}
	u.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	u.ContainerStatus.Resources, u.AllocatedResources = &u.granted, u.granted.Requests
	l.identify(u)
	switch how := l.schedule.ending(u.spec, u.kind); {
	case u.kind == initContainer && how == (ending{ends: true}):
		l.exit(u, 0)
	case how.ends:
		l.again(how.after)
	}
}

// hold puts a container that could not be started into a waiting state. Kubelets do not show it for init containers and
// sidecars that ended well.
func (l *life) hold(u *unit, reason, message string) {
	if (u.kind == initContainer || u.kind == sidecarContainer) && u.exit() != nil && u.exit().ExitCode == 0 {
		if l.memory.hidden == nil {
			l.memory.hidden = map[string]corev1.ContainerState{}
		}
		l.memory.hidden[u.Name] = waiting(reason, message)
		return
	}
	if u.State.Terminated != nil {
		u.LastTerminationState = u.State
	}
	u.State = waiting(reason, message)
}

// backOff has a container wait before its restart.
func (l *life) backOff(u *unit, length time.Duration) {
	message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", length, u.Name, l.name())
	if w := u.State.Waiting; w == nil || w.Message != message {
		l.recordEvent(u.spec, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s",
			u.Name, l.name())
	}
	l.hold(u, crashLoop, message)
}

// name returns the pod's name as kubelets write it.
func (us *units) name() string {
	return fmt.Sprintf("%s_%s(%s)", us.pod.Name, us.pod.Namespace, us.pod.UID)
}

// pull has a container wait for an image that cannot be pulled: a failed pull, then the back-off.
func (l *life) pull(u *unit) {
	image := u.spec.Image
	why := fmt.Sprintf("failed to resolve image %q: not found", image)
	switch w := u.State.Waiting; {
	case w != nil && w.Reason == "ImagePullBackOff":
	case w != nil && w.Reason == "ErrImagePull":
		text := fmt.Sprintf("Back-off pulling image %q", image)
		l.recordEvent(u.spec, corev1.EventTypeNormal, "BackOff", "%s", text)
		l.hold(u, "ImagePullBackOff", text+": ErrImagePull: "+why)
	default:
		l.recordEvent(u.spec, corev1.EventTypeNormal, "Pulling", "Pulling image %q", image)
		l.recordEvent(u.spec, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", image, why)
		l.recordEvent(u.spec, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		l.hold(u, "ErrImagePull", why)
		l.pullFailed = true
		l.again(1)
	}
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
