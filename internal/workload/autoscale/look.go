package autoscale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// look is one reconcile of an autoscaler. It owns hpa and changes its status.
type look struct {
	*autoscalers
	hpa    *autoscalingv2.HorizontalPodAutoscaler
	about  corev1.ObjectReference
	memory *memory
	now    time.Time
}

// scale scales the target, if needed, and records the result in the status.
func (l *look) scale(ctx context.Context) {
	of, target, err := l.target(ctx)
	if err != nil {
		l.warn(ctx, "FailedGetScale", err)
		l.condition(autoscalingv2.AbleToScale, false, "FailedGetScale",
			"the HPA controller was unable to get the target's current scale: %v", err)
		return
	}
	l.condition(autoscalingv2.AbleToScale, true, "SucceededGetScale",
		"the HPA controller was able to get the target's current scale")
	current := target.Spec.Replicas
	l.memory.past.begin(current, l.now)
	desired, reason, metrics, ok := l.decide(ctx, target)
	if !ok {
		l.status(current, l.hpa.Status.DesiredReplicas, metrics)
		return
	}
	if desired == current {
		l.status(current, desired, metrics)
		return
	}
	if err := l.Rescale(ctx, of, desired); err != nil {
		l.Warning(ctx, l.about, "FailedRescale", "New size: %d; reason: %s; error: %v", desired, reason, err)
		l.condition(autoscalingv2.AbleToScale, false, "FailedUpdateScale",
			"the HPA controller was unable to update the target scale: %v", err)
		l.status(current, l.hpa.Status.DesiredReplicas, metrics)
		return
	}
	l.condition(autoscalingv2.AbleToScale, true, "SucceededRescale",
		"the HPA controller was able to update the target scale to %d", desired)
	l.Normal(ctx, l.about, "SuccessfulRescale", "New size: %d; reason: %s", desired, reason)
	if b := l.hpa.Spec.Behavior; b != nil {
		l.memory.past.scaled(rulesOf(b), desired-current, l.now)
	}
	l.zero(current, desired)
	l.status(current, desired, metrics)
	l.hpa.Status.LastScaleTime = &metav1.Time{Time: l.now}
}

// target returns the scale of the autoscaler's target.
func (l *look) target(ctx context.Context) (of cluster.Scalable, s *autoscalingv1.Scale, err error) {
	ref := l.hpa.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return of, nil, err
	}
	of, err = l.Scalable(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, l.hpa.Namespace, ref.Name)
	if err != nil {
		return of, nil, err
	}
	s, err = l.Scale(ctx, of)
	if err == nil && s == nil {
		err = apierrors.NewNotFound(of.Resource, ref.Name)
	}
	return of, s, err
}

// decide returns the desired replicas and, if they differ from the current ones, the reason. ok is false if the number
// cannot be computed.
func (l *look) decide(ctx context.Context, target *autoscalingv1.Scale) (
	desired int32, reason string, metrics []autoscalingv2.MetricStatus, ok bool,
) {
	current, least, most := target.Spec.Replicas, l.least(), l.hpa.Spec.MaxReplicas
	switch {
	case current == 0 && !l.wakes(least):
		l.condition(autoscalingv2.ScalingActive, false, "ScalingDisabled",
			"scaling is disabled since the replica count of the target is zero")
		if !l.toZero {
			l.dropZero()
		}
		return 0, "", nil, true
	case current > most:
		return most, "Current number of replicas above Spec.MaxReplicas", nil, true
	case current > 0 && current < least:
		return least, belowLeast, nil, true
	}
	desired, metric, metrics, err := l.propose(ctx, target)
	if err != nil {
		l.warn(ctx, "FailedComputeMetricsReplicas", err)
		return 0, "", metrics, false
	}
	switch {
	case desired > current:
		reason = metric + " above target"
	case desired < current:
		reason = "All metrics below target"
	}
	bounds := limits{least: least, most: most, current: current}
	var able, limited verdict
	if b := l.hpa.Spec.Behavior; b == nil {
		desired, able, limited = l.memory.past.settle(bounds, desired, l.now)
	} else {
		desired, able, limited = l.memory.past.settleBy(rulesOf(b), bounds, desired, l.now)
	}
	l.condition(autoscalingv2.AbleToScale, true, able.reason, "%s", able.message)
	l.condition(autoscalingv2.ScalingLimited, limited.holds, limited.reason, "%s", limited.message)
	if current == 0 && desired < least {
		desired, reason = least, cmp.Or(reason, belowLeast)
	}
	return desired, reason, metrics, true
}

// belowLeast is the reason to scale a target with too few replicas.
const belowLeast = "Current number of replicas below Spec.MinReplicas"

func (l *look) least() int32 {
	if l.hpa.Spec.MinReplicas != nil {
		return *l.hpa.Spec.MinReplicas
	}
	return 1
}

// propose returns the highest proposal of the metrics, and the metric's name. Scaling up ignores metrics that fail;
// scaling down requires all metrics.
func (l *look) propose(ctx context.Context, target *autoscalingv1.Scale) (
	desired int32, metric string, statuses []autoscalingv2.MetricStatus, err error,
) {
	selector, err := l.selector(ctx, target.Status.Selector)
	if err != nil {
		return 0, "", nil, err
	}
	specs := l.hpa.Spec.Metrics
	statuses = make([]autoscalingv2.MetricStatus, len(specs))
	var first *failure
	failed := 0
	for i := range specs {
		found, failure := l.read(&specs[i], target, selector)
		if failure != nil {
			l.warn(ctx, failure.reason, failure.why)
			if failed++; first == nil {
				first = failure
			}
			continue
		}
		statuses[i] = found.status
		if desired == 0 || found.replicas > desired {
			desired, metric = found.replicas, found.name
		}
	}
	if failed >= len(specs) || failed > 0 && desired < target.Spec.Replicas {
		if first == nil {
			first = &failure{why: errors.New("there are no metrics")} // the API adds a default metric
		}
		l.condition(autoscalingv2.ScalingActive, false, first.reason,
			"the HPA was unable to compute the replica count: %v", first.why)
		return 0, "", statuses, fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", failed,
			len(specs), first)
	}
	l.condition(autoscalingv2.ScalingActive, true, "ValidMetricFound",
		"the HPA was able to successfully calculate a replica count from %s", metric)
	return desired, metric, statuses, nil
}

// selector returns the selector of the target's pods, or an error if it is unknown or another autoscaler selects some
// of them.
func (l *look) selector(ctx context.Context, text string) (labels.Selector, error) {
	refuse := func(event, reason, message string, err error) (labels.Selector, error) {
		l.warn(ctx, event, err)
		l.condition(autoscalingv2.ScalingActive, false, reason, "%s", message)
		return nil, err
	}
	if text == "" {
		return refuse("SelectorRequired", "InvalidSelector", "the HPA target's scale is missing a selector",
			errors.New("selector is required"))
	}
	selector, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		return refuse("InvalidSelector", "InvalidSelector", err.Error(), err)
	}
	pods := cluster.Pods.Selected(l.index, l.hpa.Namespace, selector)
	if all := l.selecting(l, selector, pods); len(all) > 1 {
		err := fmt.Errorf("pods by selector %v are controlled by more than one HPA (e.g. %v)", text, all[:2])
		return refuse("AmbiguousSelector", "AmbiguousSelector", err.Error(), err)
	}
	return selector, nil
}

// status sets the numbers of the status, and keeps the rest.
func (l *look) status(current, desired int32, metrics []autoscalingv2.MetricStatus) {
	s := &l.hpa.Status
	s.CurrentReplicas, s.DesiredReplicas, s.CurrentMetrics = current, desired, metrics
	if l.generations {
		s.ObservedGeneration = &l.hpa.Generation
	}
}

// condition puts a condition into the status.
func (l *look) condition(
	kind autoscalingv2.HorizontalPodAutoscalerConditionType, holds bool, reason, format string, args ...any,
) {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
		LastTransitionTime: metav1.Time{Time: l.now},
	}
	if holds {
		c.Status = corev1.ConditionTrue
	}
	all := &l.hpa.Status.Conditions
	i := slices.IndexFunc(*all,
		func(has autoscalingv2.HorizontalPodAutoscalerCondition) bool { return has.Type == kind })
	if i < 0 {
		*all = append(*all, c)
		return
	}
	if was := (*all)[i]; was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	(*all)[i] = c
}

// zero records in the condition ScaledToZero whether the autoscaler, and not a user, has scaled its target to zero.
func (l *look) zero(current, desired int32) {
	if !l.toZero {
		l.dropZero()
		return
	}
	if current > 0 && desired == 0 && l.least() == 0 && l.readsOutside() {
		l.condition(autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero")
		return
	}
	l.condition(autoscalingv2.ScaledToZero, false, "NotScaledToZero",
		"the HPA controller did not scale the workload to zero")
}

// dropZero removes the condition ScaledToZero, which has no meaning without the feature gate.
func (l *look) dropZero() {
	l.hpa.Status.Conditions = slices.DeleteFunc(l.hpa.Status.Conditions,
		func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScaledToZero
		})
}

// wakes reports whether the autoscaler may scale up a target without replicas. It may if it has scaled the target to
// zero itself, and has a metric that exists without pods or a least number of replicas.
func (l *look) wakes(least int32) bool {
	scaled := slices.ContainsFunc(l.hpa.Status.Conditions,
		func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue
		})
	return l.toZero && scaled && (least != 0 || l.readsOutside())
}

// readsOutside reports whether a metric is about another object than the target's pods.
func (l *look) readsOutside() bool {
	return slices.ContainsFunc(l.hpa.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
}

func (l *look) warn(ctx context.Context, reason string, err error) {
	l.Warning(ctx, l.about, reason, "%v", err)
}
