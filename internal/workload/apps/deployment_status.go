package apps

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Progressing that the controller itself reads.
const (
	progressComplete = "NewReplicaSetAvailable"
	progressTimedOut = "ProgressDeadlineExceeded"
	progressPaused   = "DeploymentPaused"
)

func newCondition(
	kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, now time.Time,
) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
}

// condition returns the condition of a type, or nil if there is none.
func condition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition sets a condition, at the end of the list. A condition with the same status and reason is kept.
func setCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if old := condition(s, c.Type); old != nil {
		if old.Status == c.Status && old.Reason == c.Reason {
			return
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	removeCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

func removeCondition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions,
		func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// hasDeadline reports whether the progress of a Deployment is watched.
func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// notePause records in the status that a Deployment was paused or resumed, so that the pause does not count as lack of
// progress.
func notePause(d *appsv1.Deployment, now time.Time) {
	c := condition(&d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(d) || c != nil && c.Reason == progressTimedOut {
		return
	}
	paused := c != nil && c.Reason == progressPaused
	switch {
	case d.Spec.Paused && !paused:
		setCondition(&d.Status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, progressPaused,
			"Deployment is paused", now))
	case !d.Spec.Paused && paused:
		setCondition(&d.Status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown,
			"DeploymentResumed", "Deployment is resumed", now))
	}
}

// deploymentStatus counts the pods of a Deployment and computes the condition Available. all includes current, unless
// current is nil.
func deploymentStatus(
	d *appsv1.Deployment, current *appsv1.ReplicaSet, all []*appsv1.ReplicaSet, now time.Time,
) appsv1.DeploymentStatus {
	s := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, AvailableReplicas: availableReplicas(all),
		CollisionCount: d.Status.CollisionCount, TerminatingReplicas: terminating(all),
		Conditions: slices.Clone(d.Status.Conditions),
	}
	for _, set := range all {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
	}
	if current != nil {
		s.UpdatedReplicas = current.Status.Replicas
	}
	s.UnavailableReplicas = max(0, specReplicas(all)-s.AvailableReplicas)
	if s.AvailableReplicas >= *d.Spec.Replicas-maxUnavailable(d) {
		setCondition(&s, newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable",
			"Deployment has minimum availability.", now))
	} else {
		setCondition(&s, newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable",
			"Deployment does not have minimum availability.", now))
	}
	return s
}

// terminating returns the number of terminating pods, or nil if a ReplicaSet does not report it.
func terminating(all []*appsv1.ReplicaSet) *int32 {
	n := int32(0)
	for _, set := range all {
		switch {
		case set.Status.TerminatingReplicas != nil:
			n += *set.Status.TerminatingReplicas
		case set.Status.ObservedGeneration > 0:
			return nil
		}
	}
	return &n
}

// isComplete reports whether all pods are of the template and available.
func isComplete(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	n := *d.Spec.Replicas
	return s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n && s.ObservedGeneration >= d.Generation
}

// progressed reports whether a status shows progress since the last one.
func progressed(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	was := &d.Status
	return s.UpdatedReplicas > was.UpdatedReplicas || s.ReadyReplicas > was.ReadyReplicas ||
		s.AvailableReplicas > was.AvailableReplicas ||
		s.Replicas-s.UpdatedReplicas < was.Replicas-was.UpdatedReplicas
}

// rolloutStatus is deploymentStatus with the conditions Progressing and ReplicaFailure.
func rolloutStatus(
	d *appsv1.Deployment, current *appsv1.ReplicaSet, all []*appsv1.ReplicaSet, now time.Time,
) appsv1.DeploymentStatus {
	s := deploymentStatus(d, current, all, now)
	if hasDeadline(d) {
		noteProgress(d, &s, current, now)
	} else {
		removeCondition(&s, appsv1.DeploymentProgressing)
	}
	if failure := replicaFailure(current, all); failure != nil {
		setCondition(&s, *failure)
	} else {
		removeCondition(&s, appsv1.DeploymentReplicaFailure)
	}
	return s
}

// noteProgress sets the condition Progressing. It does not touch a completed rollout.
func noteProgress(d *appsv1.Deployment, s *appsv1.DeploymentStatus, current *appsv1.ReplicaSet, now time.Time) {
	was := condition(&d.Status, appsv1.DeploymentProgressing)
	if was != nil && was.Reason == progressComplete && s.Replicas == s.UpdatedReplicas {
		return
	}
	subject := fmt.Sprintf("Deployment %q", d.Name)
	if current != nil {
		subject = fmt.Sprintf("ReplicaSet %q", current.Name)
	}
	switch {
	case isComplete(d, s):
		setCondition(s, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, progressComplete,
			subject+" has successfully progressed.", now))
	case progressed(d, s):
		c := newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated",
			subject+" is progressing.", now)
		if was != nil && was.Status == corev1.ConditionTrue {
			c.LastTransitionTime = was.LastTransitionTime
		}
		removeCondition(s, appsv1.DeploymentProgressing) // forces a new update time
		setCondition(s, c)
	case timedOut(d, s, now):
		setCondition(s, newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, progressTimedOut,
			subject+" has timed out progressing.", now))
	}
}

// timedOut reports whether the last progress is longer ago than the deadline.
func timedOut(d *appsv1.Deployment, s *appsv1.DeploymentStatus, now time.Time) bool {
	c := condition(s, appsv1.DeploymentProgressing)
	switch {
	case c == nil || c.Reason == progressComplete:
		return false
	case c.Reason == progressTimedOut:
		return true
	}
	return c.LastUpdateTime.Add(deadline(d)).Before(now)
}

func deadline(d *appsv1.Deployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// nextProgressCheck returns the time until the progress deadline.
func nextProgressCheck(d *appsv1.Deployment, s *appsv1.DeploymentStatus, now time.Time) (time.Duration, bool) {
	c := condition(&d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(d) || c == nil || isComplete(d, s) || c.Reason == progressTimedOut {
		return 0, false
	}
	return c.LastUpdateTime.Add(deadline(d)).Sub(now), true
}

// replicaFailure returns the condition of why pods cannot be made or deleted, of the current ReplicaSet first.
func replicaFailure(current *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) *appsv1.DeploymentCondition {
	if current != nil {
		all = append([]*appsv1.ReplicaSet{current}, all...)
	}
	for _, set := range all {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{
					Type: appsv1.DeploymentConditionType(c.Type), Status: c.Status, Reason: c.Reason,
					Message: c.Message, LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime,
				}
			}
		}
	}
	return nil
}
