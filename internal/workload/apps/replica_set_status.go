package apps

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// setStatus returns the status of a set with these active pods. failed is the error of creating or deleting some. The
// generation that it is of, and the terminating replicas, are the caller's.
func setStatus(set *appsv1.ReplicaSet, active []*corev1.Pod, failed error, now time.Time) appsv1.ReplicaSetStatus {
	status := *set.Status.DeepCopy()
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	status.Replicas = int32(len(active))
	status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	status.TerminatingReplicas = nil
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
		if replica.IsReady(p) {
			status.ReadyReplicas++
		}
		if replica.IsAvailable(p, set.Spec.MinReadySeconds, now) {
			status.AvailableReplicas++
		}
	}
	at := slices.IndexFunc(status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure
	})
	switch {
	case failed == nil && at >= 0:
		status.Conditions = slices.Delete(status.Conditions, at, at+1)
	case failed != nil && at < 0:
		reason := ""
		switch want := int(*set.Spec.Replicas); {
		case len(active) < want:
			reason = "FailedCreate"
		case len(active) > want:
			reason = "FailedDelete"
		}
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason,
			Message: failed.Error(), LastTransitionTime: metav1.NewTime(now),
		})
	}
	return status
}

// sameSetStatus reports whether two statuses say the same, whatever generation they are of.
func sameSetStatus(a, b appsv1.ReplicaSetStatus) bool {
	b.ObservedGeneration = a.ObservedGeneration
	return equality.Semantic.DeepEqual(a, b)
}
