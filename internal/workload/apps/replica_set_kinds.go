package apps

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// appsReplicaSets are the ReplicaSets.
type appsReplicaSets struct{}

var _ setKind = appsReplicaSets{}

func (appsReplicaSets) prefix() string { return cluster.ReplicaSets.Prefix }

func (appsReplicaSets) name() string { return cluster.ReplicaSets.Kind }

func (appsReplicaSets) countsTerminating() bool { return true }

func (appsReplicaSets) read(x *cluster.Index, namespace, name string) *appsv1.ReplicaSet {
	return cluster.ReplicaSets.Read(x, namespace, name)
}

func (appsReplicaSets) claimant(
	x *cluster.Index, set *appsv1.ReplicaSet, selector labels.Selector,
) cluster.Claimant {
	return cluster.ReplicaSets.Claimant(x, set, selector)
}

func (appsReplicaSets) about(set *appsv1.ReplicaSet) corev1.ObjectReference {
	return cluster.ReplicaSets.Ref(set)
}

func (appsReplicaSets) related(x *cluster.Index, set *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	controller := metav1.GetControllerOfNoCopy(set)
	if controller == nil {
		return []*appsv1.ReplicaSet{set}
	}
	return cluster.ReplicaSets.Controlled(x, set.Namespace, string(controller.UID), false)
}

func (appsReplicaSets) needMatching(x *cluster.Index, ev *watchcache.Event, need func(string)) {
	cluster.ReplicaSets.NeedMatching(x, ev,
		func(set *appsv1.ReplicaSet) *metav1.LabelSelector { return set.Spec.Selector }, need)
}

func (appsReplicaSets) writeStatus(ctx context.Context, c *cluster.Cluster, set *appsv1.ReplicaSet) error {
	_, err := cluster.ReplicaSets.UpdateStatus(ctx, c, set, func(current *appsv1.ReplicaSet) error {
		current.Status = set.Status
		return nil
	})
	return err
}

// coreControllers are the ReplicationControllers.
type coreControllers struct{}

var _ setKind = coreControllers{}

func (coreControllers) prefix() string { return cluster.ReplicationControllers.Prefix }

func (coreControllers) name() string { return cluster.ReplicationControllers.Kind }

func (coreControllers) countsTerminating() bool { return false }

func (coreControllers) read(x *cluster.Index, namespace, name string) *appsv1.ReplicaSet {
	rc := cluster.ReplicationControllers.Read(x, namespace, name)
	if rc == nil {
		return nil
	}
	return asSet(rc)
}

// asSet returns a ReplicationController as the ReplicaSet that would do the same.
func asSet(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: *rc.ObjectMeta.DeepCopy(),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector: &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas: rc.Status.ReadyReplicas, AvailableReplicas: rc.Status.AvailableReplicas,
			ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
	}
	for _, c := range rc.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime,
		})
	}
	return set
}

func (coreControllers) claimant(x *cluster.Index, set *appsv1.ReplicaSet, s labels.Selector) cluster.Claimant {
	return cluster.ReplicationControllers.Claimant(x,
		&corev1.ReplicationController{ObjectMeta: set.ObjectMeta}, s)
}

func (coreControllers) about(set *appsv1.ReplicaSet) corev1.ObjectReference {
	return cluster.ReplicationControllers.Ref(&corev1.ReplicationController{ObjectMeta: set.ObjectMeta})
}

func (coreControllers) related(x *cluster.Index, set *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	controller := metav1.GetControllerOfNoCopy(set)
	if controller == nil {
		return []*appsv1.ReplicaSet{set}
	}
	var out []*appsv1.ReplicaSet
	for _, rc := range cluster.ReplicationControllers.ReadAll(x, set.Namespace) {
		if of := metav1.GetControllerOfNoCopy(rc); of != nil && of.UID == controller.UID {
			out = append(out, asSet(rc))
		}
	}
	return out
}

func (coreControllers) needMatching(x *cluster.Index, ev *watchcache.Event, need func(string)) {
	cluster.ReplicationControllers.NeedMatching(x, ev, func(rc *corev1.ReplicationController) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
	}, need)
}

func (coreControllers) writeStatus(ctx context.Context, c *cluster.Cluster, set *appsv1.ReplicaSet) error {
	rc := &corev1.ReplicationController{ObjectMeta: set.ObjectMeta}
	status := corev1.ReplicationControllerStatus{
		Replicas: set.Status.Replicas, FullyLabeledReplicas: set.Status.FullyLabeledReplicas,
		ReadyReplicas: set.Status.ReadyReplicas, AvailableReplicas: set.Status.AvailableReplicas,
		ObservedGeneration: set.Status.ObservedGeneration,
	}
	for _, c := range set.Status.Conditions {
		status.Conditions = append(status.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, Reason: c.Reason,
			Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	_, err := cluster.ReplicationControllers.UpdateStatus(ctx, c, rc,
		func(current *corev1.ReplicationController) error {
			current.Status = status
			return nil
		})
	return err
}
