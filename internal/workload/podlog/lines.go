package podlog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// The annotations with the output of containers: of all of them, or of the container that the suffix names.
const (
	logs   = "bowsprit.dev/simulate-logs"
	logsOf = "simulate-logs.bowsprit.dev/"
)

// run is one execution of a container.
type run struct {
	id      string
	started time.Time
	ended   time.Time // zero while it runs
}

// runOf returns the run of a container that a log request selects, or why there is none. Source of rules and messages:
// validateContainerLogStatus, pkg/kubelet of Kubernetes 1.36.
func runOf(pod *corev1.Pod, container string, previous bool) (run, error) {
	s := statusOf(pod, container)
	if s == nil {
		return run{}, fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	last := s.LastTerminationState.Terminated
	switch state := s.State; {
	case previous && (last == nil || last.ContainerID == ""):
		return run{}, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return over(last), nil
	case state.Running != nil:
		return run{id: s.ContainerID, started: state.Running.StartedAt.Time}, nil
	case state.Terminated != nil && state.Terminated.ContainerID != "":
		return over(state.Terminated), nil
	case last != nil && last.ContainerID != "":
		return over(last), nil
	case state.Terminated != nil, last != nil:
		return run{}, fmt.Errorf("container %q in pod %q is terminated", container, pod.Name)
	case state.Waiting == nil:
		return run{}, fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, pod.Name)
	case state.Waiting.Reason == "ErrImagePull":
		return run{}, fmt.Errorf("container %q in pod %q is waiting to start: image can't be pulled",
			container, pod.Name)
	case state.Waiting.Reason == "ImagePullBackOff":
		return run{}, fmt.Errorf("container %q in pod %q is waiting to start: trying and failing to pull image",
			container, pod.Name)
	default:
		return run{}, fmt.Errorf("container %q in pod %q is waiting to start: %v", container, pod.Name,
			state.Waiting.Reason)
	}
}

func over(t *corev1.ContainerStateTerminated) run {
	return run{id: t.ContainerID, started: t.StartedAt.Time, ended: t.FinishedAt.Time}
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		if i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == container }); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// again returns the current state of a run, and whether it is still the latest run of its container.
func (r run) again(pod *corev1.Pod, container string) (now run, there bool) {
	s := statusOf(pod, container)
	if s == nil {
		return r, false
	}
	if s.State.Running != nil && s.ContainerID == r.id {
		return r, true
	}
	for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t != nil && t.ContainerID == r.id {
			return over(t), true
		}
	}
	return r, false
}

// line is a line of a container's output, with its time.
type line struct {
	at   time.Time
	text string
}

// written returns the lines that a container has written in a run so far, and the time until the next one; 0 if there
// is none.
func written(pod *corev1.Pod, container string, r run, now time.Time) (lines []line, next time.Duration) {
	text, ok := pod.Annotations[logsOf+container]
	if !ok {
		text = pod.Annotations[logs]
	}
	if text == "" {
		return nil, 0
	}
	until := now
	if !r.ended.IsZero() && r.ended.Before(now) {
		until = r.ended
	}
	after := time.Duration(0)
	for _, one := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if later, rest, ok := delayed(one); ok {
			after, one = max(after, later), rest
		}
		at := r.started.Add(after)
		if at.After(until) {
			if r.ended.IsZero() {
				next = at.Sub(now)
			}
			break
		}
		lines = append(lines, line{at, one})
	}
	return lines, next
}

// delayed parses a line that begins with its delay after the start: "+5s text".
func delayed(text string) (after time.Duration, rest string, ok bool) {
	if !strings.HasPrefix(text, "+") {
		return 0, text, false
	}
	word, rest, _ := strings.Cut(text[1:], " ")
	after, err := time.ParseDuration(word)
	return after, rest, err == nil && after >= 0
}

// stampFormat is that of a kubelet's timestamps.
const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// wanted applies a request's tailLines and since options to the lines of a log, in this order.
func wanted(lines []line, o *corev1.PodLogOptions, now time.Time) []line {
	if o.TailLines != nil && int64(len(lines)) > *o.TailLines {
		lines = lines[int64(len(lines))-*o.TailLines:]
	}
	var since time.Time
	switch {
	case o.SinceSeconds != nil:
		since = now.Add(-cluster.Seconds(*o.SinceSeconds))
	case o.SinceTime != nil:
		since = o.SinceTime.Time
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.at.Before(since) })
}
