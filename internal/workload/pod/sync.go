package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sync advances the containers as far as they get at the present time. Source: computePodActions and SyncPod of
// pkg/kubelet/kuberuntime of Kubernetes 1.37. A round of the loop is one sync of a kubelet.
func (l *life) sync() {
	l.expire()
	if !l.restartAll() {
		return
	}
	for l.round() {
	}
	if l.pullFailed {
		l.pullSecrets()
	}
}

// round is one sync. It reports whether another one may get further.
func (l *life) round() bool {
	if isTerminal(l.phase(false)) {
		l.stop()
		return false
	}
	changed := false
	for i := range l.debuggers() {
		if u := &l.debuggers()[i]; !u.ran() {
			changed = l.start(u, nil) || changed
		}
	}
	plan := l.plan()
	if plan.stop {
		return l.stop() || changed
	}
	for _, u := range plan.restart {
		before := u.LastTerminationState.Terminated
		l.kill(u, plan.why[u.Name])
		changed = l.start(u, before) || changed
	}
	for _, u := range plan.inits {
		started := l.start(u, u.exit())
		if changed = started || changed; !started && u.kind == initContainer {
			return changed
		}
	}
	for _, u := range plan.mains {
		changed = l.start(u, u.exit()) || changed
	}
	return changed
}

// plan is the work of one sync.
type plan struct {
	inits, mains []*unit // to be started, in this order
	restart      []*unit // that run, and are ended and started again
	why          map[string]string
	stop         bool // ends all containers: the pod has finished
}

func (p *plan) replace(u *unit, why string) {
	if p.why == nil {
		p.why = map[string]string{}
	}
	p.restart, p.why[u.Name] = append(p.restart, u), why
}

// plan decides which containers are to be started or ended.
func (l *life) plan() (p plan) {
	initialized := l.planInits(&p)
	if p.stop || !initialized {
		return p
	}
	kept := 0
	for i := range l.mains() {
		switch u := &l.mains()[i]; {
		case !u.running():
			if u.exit() == nil || restarts(l.pod, u.spec, u.exit().ExitCode) {
				p.mains = append(p.mains, u)
			}
		case u.Image != u.spec.Image:
			p.replace(u, fmt.Sprintf("Container %s definition changed, will be restarted", u.Name))
			kept++
		case u.resizeRestarts():
			p.replace(u, fmt.Sprintf("Container %s resize requires restart", u.Name))
			kept++
		default:
			kept++
		}
	}
	if kept == 0 && len(p.mains) == 0 {
		return plan{stop: true}
	}
	return p
}

// planInits decides about init containers, and reports whether the containers after them may be started. Only the last
// init container that has run matters, and the sidecars before it. A pod with a main container that has run stays
// initialized while its sidecars restart.
func (l *life) planInits(p *plan) (initialized bool) {
	inits := l.inits()
	if len(inits) == 0 {
		return true
	}
	initialized = slices.ContainsFunc(l.mains(), func(u unit) bool { return u.ran() })
	past := initialized // the container at i has been initialized before
	for i := len(inits) - 1; i >= 0; i-- {
		u := &inits[i]
		switch {
		case !u.ran():
			if past && u.kind == sidecarContainer {
				p.inits = append(p.inits, u)
			}
			continue
		case past && u.kind == initContainer:
			continue
		case u.running() && u.kind == initContainer:
		case u.running():
			switch {
			case i == len(inits)-1:
				initialized = true
			case !past:
				p.inits = append(p.inits, &inits[i+1])
			}
			switch {
			case u.Image != u.spec.Image:
				p.replace(u, fmt.Sprintf("Init container %s definition changed", u.Name))
			case u.resizeRestarts():
				p.replace(u, fmt.Sprintf("Container %s resize requires restart", u.Name))
			}
		case u.kind == sidecarContainer:
			p.inits = append(p.inits, u)
		case u.exit().ExitCode != 0:
			if !restarts(l.pod, u.spec, u.exit().ExitCode) {
				*p = plan{stop: true}
				return false
			}
			p.inits = append(p.inits, u)
		case i == len(inits)-1:
			initialized = true
		default:
			p.inits = append(p.inits, &inits[i+1])
		}
		past = true
	}
	if !past {
		p.inits = append(p.inits, &inits[0])
	}
	slices.Reverse(p.inits)
	return initialized
}

// expire ends the containers that end by themselves by now.
func (l *life) expire() {
	for i := range l.all {
		u := &l.all[i]
		if !u.running() {
			continue
		}
		how := l.schedule.ending(u.spec, u.kind)
		if !how.ends {
			continue
		}
		if left := u.State.Running.StartedAt.Add(how.after).Sub(l.now); left > 0 {
			l.again(left)
			continue
		}
		l.exit(u, how.code)
		u.ended = true
	}
}

// exit ends the run of a container.
func (l *life) exit(u *unit, code int32) {
	u.State = terminated(code, u.State.Running.StartedAt, metav1.Time{Time: l.now})
	u.State.Terminated.ContainerID = u.ContainerID
}

// kill ends a running container on behalf of the kubelet.
func (l *life) kill(u *unit, why string) {
	l.recordEvent(u.spec, corev1.EventTypeNormal, "Killing", "%s", why)
	l.exit(u, l.interrupted(u))
}

// interrupted returns the exit code of a container that the kubelet ends: 143 (SIGTERM) if it has work that ends, 0 if
// it is a server.
func (l *life) interrupted(u *unit) int32 {
	if l.late || l.schedule.ending(u.spec, u.kind).ends {
		return 143
	}
	return 0
}

// stop ends all running containers: sidecars last, in reverse order. It reports whether any ran.
func (l *life) stop() (any bool) {
	for _, u := range l.stopOrder() {
		if u.running() {
			l.kill(u, "Stopping container "+u.Name)
			any = true
		}
	}
	return any
}

// stopOrder returns the units in the order in which a kubelet ends them.
func (us *units) stopOrder() []*unit {
	out := make([]*unit, 0, len(us.all))
	for i := range us.all {
		if us.all[i].kind != sidecarContainer {
			out = append(out, &us.all[i])
		}
	}
	for i := len(us.inits()) - 1; i >= 0; i-- {
		if u := &us.inits()[i]; u.kind == sidecarContainer {
			out = append(out, u)
		}
	}
	return out
}
