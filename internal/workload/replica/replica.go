// Package replica holds the rules that all controllers of pods share: when a pod is ready, available or active, which
// pods are deleted first, how a pod is made from a template, and the template's hash.
//
// It is pure.
package replica

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Condition returns a condition of a pod, nil if it has none of the type.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// IsReady reports whether a pod is ready.
func IsReady(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsAvailable reports whether a pod has been ready for minReady seconds.
func IsAvailable(pod *corev1.Pod, minReady int32, now time.Time) bool {
	if !IsReady(pod) {
		return false
	}
	since := Condition(pod, corev1.PodReady).LastTransitionTime
	return minReady == 0 || !since.IsZero() && !since.Add(time.Duration(minReady)*time.Second).After(now)
}

// NextAvailable returns the time until the first of the ready but not yet available pods becomes available. It returns
// minReady seconds if the time is unknown, and 0 if minReady is 0.
func NextAvailable(pods []*corev1.Pod, minReady int32, now time.Time) time.Duration {
	least := time.Duration(minReady) * time.Second
	for _, p := range pods {
		if !IsReady(p) || IsAvailable(p, minReady, now) {
			continue
		}
		since := Condition(p, corev1.PodReady).LastTransitionTime
		if wait := since.Add(time.Duration(minReady) * time.Second).Sub(now); !since.IsZero() && wait < least {
			least = wait
		}
	}
	return least
}

// HasEnded reports whether a pod will not run again.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsActive reports whether a pod runs, or will.
func IsActive(pod *corev1.Pod) bool { return !HasEnded(pod) && pod.DeletionTimestamp == nil }

// IsTerminating reports whether a pod is being deleted and has not ended.
func IsTerminating(pod *corev1.Pod) bool { return !HasEnded(pod) && pod.DeletionTimestamp != nil }

// Where returns the pods that satisfy is.
func Where(pods []*corev1.Pod, is func(*corev1.Pod) bool) (out []*corev1.Pod) {
	for _, p := range pods {
		if is(p) {
			out = append(out, p)
		}
	}
	return out
}
