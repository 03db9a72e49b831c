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

// replicas are how many active pods a set has.
type replicas struct{ all, labeled, ready, available int32 }

func replicasOf(set *appsv1.ReplicaSet, active []*corev1.Pod, now time.Time) (n replicas) {
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	n.all = int32(len(active))
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			n.labeled++
		}
		if replica.IsReady(p) {
			n.ready++
		}
		if replica.IsAvailable(p, set.Spec.MinReadySeconds, now) {
			n.available++
		}
	}
	return n
}

// setStatus returns the status of a set with the given active pods. failed is the error of creating or deleting pods.
// The caller sets observedGeneration and terminatingReplicas.
func setStatus(set *appsv1.ReplicaSet, active replicas, failed error, now time.Time) appsv1.ReplicaSetStatus {
	status := *set.Status.DeepCopy()
	status.Replicas, status.FullyLabeledReplicas = active.all, active.labeled
	status.ReadyReplicas, status.AvailableReplicas = active.ready, active.available
	status.TerminatingReplicas = nil
	at := slices.IndexFunc(status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure
	})
	switch {
	case failed == nil && at >= 0:
		status.Conditions = slices.Delete(status.Conditions, at, at+1)
	case failed != nil && at < 0:
		reason := ""
		switch want := *set.Spec.Replicas; {
		case active.all < want:
			reason = "FailedCreate"
		case active.all > want:
			reason = "FailedDelete"
		}
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason,
			Message: failed.Error(), LastTransitionTime: metav1.NewTime(now),
		})
	}
	return status
}

// sameSetStatus reports whether two statuses are equal apart from observedGeneration.
func sameSetStatus(a, b appsv1.ReplicaSetStatus) bool {
	b.ObservedGeneration = a.ObservedGeneration
	return equality.Semantic.DeepEqual(a, b)
}
