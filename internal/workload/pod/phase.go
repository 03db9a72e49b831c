package pod

import corev1 "k8s.io/api/core/v1"

// tally counts the containers of a pod for its phase.
type tally struct {
	pendingInits, pendingSidecars, lostInits int
	running, waiting, stopped, final, well   int
}

// phase returns the phase that follows from the states of the containers. terminal is set if nothing is restarted.
// Source: getPhase of pkg/kubelet of Kubernetes 1.36.
func (us *units) phase(terminal bool) corev1.PodPhase {
	var t tally
	for i := range us.inits() {
		if u := &us.inits()[i]; u.kind == sidecarContainer {
			t.sidecar(u)
		} else {
			t.init(us.pod, u)
		}
	}
	begun := false // a container has run
	for i := range us.mains() {
		u := &us.mains()[i]
		begun = begun || u.ran()
		t.main(us.pod, u)
	}
	switch {
	case t.lostInits > 0:
		return corev1.PodFailed
	case t.pendingInits > 0, t.pendingSidecars > 0 && !begun, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0:
		return corev1.PodRunning
	case t.stopped == 0:
		return corev1.PodPending
	case !terminal && t.stopped != t.final:
		return corev1.PodRunning
	case t.stopped == t.well:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// init counts an init container.
func (t *tally) init(pod *corev1.Pod, u *unit) {
	exit := u.State.Terminated
	if u.State.Waiting != nil {
		exit = u.LastTerminationState.Terminated
	}
	switch {
	case exit == nil:
		t.pendingInits++
	case exit.ExitCode != 0 && !removed(exit) && !restarts(pod, u.spec, exit.ExitCode):
		t.lostInits++
	}
}

// sidecar counts a sidecar. One that is between two runs does not count.
func (t *tally) sidecar(u *unit) {
	switch {
	case u.running():
		t.running++
	case u.State.Waiting != nil && u.LastTerminationState.Terminated == nil:
		t.pendingSidecars++
		t.waiting++
	}
}

// main counts a container.
func (t *tally) main(pod *corev1.Pod, u *unit) {
	exit := u.State.Terminated
	if u.State.Waiting != nil {
		exit = u.LastTerminationState.Terminated
	}
	switch {
	case u.running():
		t.running++
		return
	case exit == nil:
		t.waiting++
		return
	}
	t.stopped++
	if !removed(exit) && !restarts(pod, u.spec, exit.ExitCode) {
		t.final++
	}
	if u.State.Terminated != nil && exit.ExitCode == 0 {
		t.well++
	}
}
