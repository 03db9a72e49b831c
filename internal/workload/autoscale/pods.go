package autoscale

import (
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/feature/quota"
	"github.com/bowsprit/bowsprit/internal/workload/measure"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

const (
	// cpuStart is how long after its start a pod's CPU counts only if it was measured since the pod is ready.
	cpuStart = 5 * time.Minute
	// readyStart is the time after its start within which a pod must have become unready to count as never ready.
	readyStart = 30 * time.Second
	// usualTolerance is the default relative deviation of usage from its target without scaling.
	usualTolerance = 0.1
)

// tolerance is the tolerated relative deviation of usage below and above its target.
type tolerance struct{ down, up float64 }

func toleranceOf(spec *autoscalingv2.HorizontalPodAutoscalerSpec) tolerance {
	t := tolerance{usualTolerance, usualTolerance}
	if b := spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}

func (t tolerance) allows(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// workload is the input of a proposal.
type workload struct {
	pods []*corev1.Pod
	// usage is the usage of pods, by name, in thousandths.
	usage     map[string]int64
	resource  corev1.ResourceName
	container string // "" means all
	replicas  int32  // the current replicas of the target
	tolerance tolerance
	now       time.Time
}

// byValue returns the number of replicas at which each uses target thousandths, and the current average usage.
func (w *workload) byValue(target int64) (replicas int32, each int64, err error) {
	mean := func(usage map[string]int64) (ratio float64, each int64, err error) {
		total := int64(0)
		for _, v := range usage {
			total += v
		}
		each = total / int64(len(usage))
		return float64(each) / float64(target), each, nil
	}
	_, each, replicas, err = w.propose(mean, func(string) int64 { return target })
	return replicas, each, err
}

// byUtilization returns the number of replicas at which each uses target percent of its requests, the current average
// percentage, and the current average usage.
func (w *workload) byUtilization(target int32) (replicas, percent int32, each int64, err error) {
	var requests map[string]int64
	percent = -1
	share := func(usage map[string]int64) (ratio float64, each int64, err error) {
		if requests == nil {
			if requests, err = w.requests(); err != nil {
				return 0, 0, err
			}
		}
		total, requested := int64(0), int64(0)
		for name, v := range usage {
			total, requested = total+v, requested+requests[name]
		}
		if requested == 0 {
			return 0, 0, errors.New("no metrics returned matched known pods")
		}
		now := clamp(float64(total) * 100 / float64(requested))
		if percent < 0 { // later calls include assumed values
			percent = now
		}
		return float64(now) / float64(target), total / int64(len(usage)), nil
	}
	_, each, replicas, err = w.propose(share,
		func(pod string) int64 { return requests[pod] * int64(max(100, target)) / 100 })
	return replicas, percent, each, err
}

// propose returns the replicas that bring the ratio of usage to target to 1, with the current ratio and average usage.
// measure computes both for the given pods. When scaling up, pods that are not ready or that lack metrics count as
// idle; when scaling down, pods that lack metrics count with the assumed usage.
func (w *workload) propose(
	measure func(usage map[string]int64) (ratio float64, each int64, err error), assumed func(pod string) int64,
) (ratio float64, each int64, replicas int32, err error) {
	if len(w.pods) == 0 {
		return 0, 0, 0, errors.New("no pods returned by selector while calculating replica count")
	}
	ready, unready, missing := w.group()
	if len(w.usage) == 0 {
		return 0, 0, 0, errors.New("did not receive metrics for targeted pods (pods might be unready)")
	}
	if ratio, each, err = measure(w.usage); err != nil {
		return 0, 0, 0, err
	}
	idle := len(unready) > 0 && ratio > 1
	if !idle && len(missing) == 0 {
		if w.tolerance.allows(ratio) {
			return ratio, each, w.replicas, nil
		}
		return ratio, each, ceil(ratio * float64(ready)), nil
	}
	for _, name := range missing {
		switch {
		case ratio < 1:
			w.usage[name] = assumed(name)
		case ratio > 1:
			w.usage[name] = 0
		}
	}
	if idle {
		for _, name := range unready {
			w.usage[name] = 0
		}
	}
	again, _, err := measure(w.usage)
	if err != nil {
		return 0, 0, 0, err
	}
	replicas = ceil(again * float64(len(w.usage)))
	switch {
	case w.tolerance.allows(again), ratio < 1 && again > 1, ratio > 1 && again < 1,
		again < 1 && replicas > w.replicas, again > 1 && replicas < w.replicas:
		replicas = w.replicas // it would reverse the direction, or change too little
	}
	return ratio, each, replicas, nil
}

func ceil(f float64) int32 { return clamp(math.Ceil(f)) }

// clamp returns the whole part of a number, within the type.
func clamp(f float64) int32 { return int32(max(math.MinInt32, min(f, math.MaxInt32))) }

// group counts the ready pods, and returns the pods that are not ready, and the pods without metrics. It drops the
// usage of pods that are not ready or have ended.
func (w *workload) group() (ready int, unready, missing []string) {
	for _, p := range w.pods {
		_, known := w.usage[p.Name]
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
			delete(w.usage, p.Name)
		case p.Status.Phase == corev1.PodPending:
			unready = append(unready, p.Name)
			delete(w.usage, p.Name)
		case !known:
			missing = append(missing, p.Name)
		case w.resource == corev1.ResourceCPU && w.starts(p):
			unready = append(unready, p.Name)
			delete(w.usage, p.Name)
		default:
			ready++
		}
	}
	return ready, unready, missing
}

// starts reports whether a pod is still starting, so that its CPU usage is not representative.
func (w *workload) starts(p *corev1.Pod) bool {
	c := replica.Condition(p, corev1.PodReady)
	if c == nil || p.Status.StartTime == nil {
		return true
	}
	if p.Status.StartTime.Add(cpuStart).After(w.now) {
		return c.Status == corev1.ConditionFalse || w.now.Before(c.LastTransitionTime.Add(measure.Window))
	}
	return c.Status == corev1.ConditionFalse && p.Status.StartTime.Add(readyStart).After(c.LastTransitionTime.Time)
}

// requests returns the requests of pods, by name, in thousandths.
func (w *workload) requests() (map[string]int64, error) {
	out := map[string]int64{}
	for _, p := range w.pods {
		n, err := w.request(p)
		if err != nil {
			return nil, err
		}
		out[p.Name] = n
	}
	return out, nil
}

func (w *workload) request(p *corev1.Pod) (milli int64, err error) {
	if r := p.Spec.Resources; r != nil && len(r.Requests) > 0 && w.container == "" {
		q, ok := quota.PodRequests(p)[w.resource]
		if !ok {
			return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", w.resource, p.Name)
		}
		return q.MilliValue(), nil
	}
	found := w.container == ""
	add := func(c *corev1.Container) {
		if err != nil || w.container != "" && (w.container != c.Name || found) {
			return
		}
		q, ok := c.Resources.Requests[w.resource]
		if !ok {
			err = fmt.Errorf("missing request for %s in container %s of Pod %s", w.resource, c.Name, p.Name)
			return
		}
		milli, found = milli+q.MilliValue(), true
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	if err == nil && !found {
		err = fmt.Errorf("container %s not found in Pod %s", w.container, p.Name)
	}
	return milli, err
}
