package pod

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/feature/quota"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// deferredRetry is the time after which a kubelet tries a deferred resize again.
const deferredRetry = 3 * time.Minute

// resize applies changed resources to the pod in two steps: the kubelet allocates them, then it applies them. Without
// room on the node the resize is deferred. Sources: KEP-1287, pkg/kubelet/allocation of Kubernetes 1.36.
func (l *life) resize() {
	s := l.status
	granted := conditionOf(s, corev1.PodResizeInProgress)
	switch {
	case granted != nil && granted.ObservedGeneration == l.pod.Generation:
		l.drop(corev1.PodResizeInProgress)
		l.apply()
		l.report(corev1.EventTypeNormal, "ResizeCompleted", "Pod resize completed: %s", l.summary(""))
		return
	case !l.resized():
		l.drop(corev1.PodResizePending)
		return
	}
	if why := l.host.room(l.pod); why != "" {
		l.deferResize(why)
		return
	}
	l.drop(corev1.PodResizePending)
	l.drop(corev1.PodResizeInProgress)
	s.Conditions = append(s.Conditions, l.resizeCondition(corev1.PodResizeInProgress, "", ""))
	for i := range l.all {
		if u := &l.all[i]; u.ContainerStatus.Resources != nil && u.kind != ephemeral {
			u.AllocatedResources = u.spec.Resources.Requests
		}
	}
	l.report(corev1.EventTypeNormal, "ResizeStarted", "Pod resize started: %s", l.summary(""))
	l.again(1)
}

// deferResize has a resize wait for room.
func (l *life) deferResize(why string) {
	l.deferred = true
	l.again(deferredRetry)
	was := conditionOf(l.status, corev1.PodResizePending)
	c := l.resizeCondition(corev1.PodResizePending, corev1.PodReasonDeferred, why)
	if was != nil {
		if was.Message == why && was.ObservedGeneration == c.ObservedGeneration {
			return
		}
		c.LastTransitionTime = was.LastTransitionTime
	}
	l.drop(corev1.PodResizePending)
	l.status.Conditions = append(l.status.Conditions, c)
	l.report(corev1.EventTypeWarning, "ResizeDeferred", "Pod resize Deferred: %s", l.summary(why))
}

func (l *life) resizeCondition(kind corev1.PodConditionType, reason, message string) corev1.PodCondition {
	at := metav1.Time{Time: l.now}
	return corev1.PodCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: at,
		LastTransitionTime: at, ObservedGeneration: l.pod.Generation,
	}
}

// drop removes a condition.
func (l *life) drop(kind corev1.PodConditionType) {
	out := l.status.Conditions[:0:0]
	for _, c := range l.status.Conditions {
		if c.Type != kind {
			out = append(out, c)
		}
	}
	l.status.Conditions = out
}

// resized reports whether the resources of a container, or of the pod, differ from the allocated ones.
func (l *life) resized() bool {
	for i := range l.all {
		if u := &l.all[i]; u.kind != ephemeral && differ(&u.granted, &u.spec.Resources) {
			return true
		}
	}
	own := l.pod.Spec.Resources
	return own != nil && l.status.Resources != nil && differ(l.status.Resources, l.totals())
}

// differ reports whether CPU or memory of two requirements differ.
func differ(a, b *corev1.ResourceRequirements) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if other(a.Requests, b.Requests, name) || other(a.Limits, b.Limits, name) {
			return true
		}
	}
	return false
}

func other(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA != inB || inA && quantity.Cmp(x, y) != 0
}

// apply sets the resources of the containers to the spec's, except of running containers that a restart will resize.
func (l *life) apply() {
	l.status.Resources = nil // sum sets the new ones
	for i := range l.all {
		u := &l.all[i]
		if u.kind == ephemeral {
			continue
		}
		was := u.granted
		u.granted = u.spec.Resources
		switch {
		case u.ContainerStatus.Resources == nil:
		case u.running() && u.kind != initContainer && restartsFor(u.spec, &was):
			u.AllocatedResources = u.granted.Requests // plan restarts it
		default:
			u.ContainerStatus.Resources, u.AllocatedResources = &u.granted, u.granted.Requests
		}
	}
}

// resizeRestarts reports whether a running container is restarted to apply its resources.
func (u *unit) resizeRestarts() bool {
	r := u.ContainerStatus.Resources
	return r != nil && !differ(&u.granted, &u.spec.Resources) && restartsFor(u.spec, r)
}

// restartsFor reports whether a container's resize policy requires a restart for a change of its resources.
func restartsFor(c *corev1.Container, was *corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer && (other(was.Requests, c.Resources.Requests, p.ResourceName) ||
			other(was.Limits, c.Resources.Limits, p.ResourceName)) {
			return true
		}
	}
	return false
}

// sum sets the resources of the whole pod: allocated ones and present ones.
func (l *life) sum() {
	if l.status.Resources != nil {
		return // apply clears them
	}
	l.status.Resources = l.totals()
	l.status.AllocatedResources = l.status.Resources.Requests
}

// totals returns the requests and limits of the whole pod.
func (us *units) totals() *corev1.ResourceRequirements {
	pod := *us.pod
	pod.Status = corev1.PodStatus{}
	r := &corev1.ResourceRequirements{Requests: quota.PodRequests(&pod), Limits: quota.PodLimits(&pod)}
	if own := us.pod.Spec.Resources; own != nil {
		r.Claims = own.Claims
	}
	return r
}

// summary describes the resources of the pod's spec as a kubelet's events do.
func (us *units) summary(problem string) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	}
	var all struct {
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers,omitempty"`
		Generation     int64       `json:"generation,omitempty"`
		Error          string      `json:"error,omitempty"`
	}
	for i := range us.inits() {
		c := us.inits()[i].spec
		all.InitContainers = append(all.InitContainers, container{c.Name, c.Resources})
	}
	for i := range us.mains() {
		c := us.mains()[i].spec
		all.Containers = append(all.Containers, container{c.Name, c.Resources})
	}
	all.Generation, all.Error = us.pod.Generation, problem
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text)
}
