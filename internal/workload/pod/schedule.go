package pod

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations that change the course of a pod; see docs/workloads.md. Exit code and run time can be set for one
// container as "simulate-exit-code.bowsprit.dev/NAME".
const (
	startDelay  = "bowsprit.dev/simulate-start-delay"  // "30s": time until containers start
	pullFailure = "bowsprit.dev/simulate-pull-failure" // "true", or a container: the image pull fails
	unready     = "bowsprit.dev/simulate-unready"      // "true", or a container: it runs and is not ready
	exitCode    = "bowsprit.dev/simulate-exit-code"    // "1": containers end with this code
	runTime     = "bowsprit.dev/simulate-run-time"     // "5s": time until containers end
	stopTime    = "bowsprit.dev/simulate-stop-time"    // "5s": time to stop after the deletion of the pod
)

// ofContainer returns the variant of an annotation key for one container.
func ofContainer(key, container string) string {
	domain, name, _ := strings.Cut(key, "/")
	return name + "." + domain + "/" + container
}

// schedule is the course of a pod according to its annotations.
type schedule struct {
	startDelay, stopTime time.Duration
	all                  ending // of containers that are neither init containers nor sidecars
	own                  func(container string) ending
	pullFailure, unready func(container string) bool
}

// ending is how containers end by themselves.
type ending struct {
	ends  bool
	code  int32
	after time.Duration
}

// ending returns how a container ends.
func (w *schedule) ending(c *corev1.Container, k kind) ending {
	if own := w.own(c.Name); own.ends {
		return own
	}
	switch k {
	case initContainer:
		return ending{ends: true}
	case plain:
		return w.all
	}
	return ending{}
}

// scheduleOf reads the annotations of a pod. Invalid values are ignored.
func scheduleOf(pod *corev1.Pod) schedule {
	text := func(key string) string { return pod.Annotations[key] }
	span := func(key string) (time.Duration, bool) {
		d, err := time.ParseDuration(text(key))
		return max(0, d), err == nil
	}
	which := func(key string) func(string) bool {
		value := text(key)
		return func(container string) bool { return value == "true" || value != "" && value == container }
	}
	w := schedule{pullFailure: which(pullFailure), unready: which(unready)}
	w.startDelay, _ = span(startDelay)
	w.stopTime, _ = span(stopTime)
	end := func(exitCode, runTime string) (e ending) {
		e.after, e.ends = span(runTime)
		if n, err := strconv.ParseInt(text(exitCode), 10, 32); err == nil {
			e.code, e.ends = int32(n), true
		}
		return e
	}
	w.all = end(exitCode, runTime)
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		w.all.ends = true
	}
	w.own = func(container string) ending {
		return end(ofContainer(exitCode, container), ofContainer(runTime, container))
	}
	return w
}
