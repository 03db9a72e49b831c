package pod

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations by which a pod asks for what is to become of it. docs/workloads.md describes them.
const (
	startDelay  = "bowsprit.dev/simulate-start-delay"  // "30s": how long containers take to start
	pullFailure = "bowsprit.dev/simulate-pull-failure" // "true", or a container: its image cannot be pulled
	unready     = "bowsprit.dev/simulate-unready"      // "true", or a container: it runs and is not ready
	exitCode    = "bowsprit.dev/simulate-exit-code"    // "1": containers end with this code
	runTime     = "bowsprit.dev/simulate-run-time"     // "5s": after how long they do
	stopTime    = "bowsprit.dev/simulate-stop-time"    // "5s": how long they take to end when the pod is deleted
)

// wish is what a pod asks for.
type wish struct {
	startDelay, runTime, stopTime time.Duration
	ends                          bool // containers end by themselves
	code                          int32
	pullFailure, unready          func(container string) bool
}

// wishOf reads the annotations of a pod. What cannot be read is as if it were not there.
func wishOf(pod *corev1.Pod) wish {
	text := func(key string) string { return pod.Annotations[key] }
	span := func(key string) (time.Duration, bool) {
		d, err := time.ParseDuration(text(key))
		return max(0, d), err == nil
	}
	which := func(key string) func(string) bool {
		value := text(key)
		return func(container string) bool { return value == "true" || value != "" && value == container }
	}
	w := wish{pullFailure: which(pullFailure), unready: which(unready)}
	w.startDelay, _ = span(startDelay)
	w.stopTime, _ = span(stopTime)
	w.runTime, w.ends = span(runTime)
	if n, err := strconv.ParseInt(text(exitCode), 10, 32); err == nil {
		w.code, w.ends = int32(n), true
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		w.ends = true
	}
	return w
}
