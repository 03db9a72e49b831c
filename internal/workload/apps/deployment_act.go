package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// make creates the current ReplicaSet if there is none.
func (r *rollout) make(ctx context.Context) error {
	if r.current != nil {
		return nil
	}
	set := newReplicaSet(r.Deployment)
	revision := maxRevision(r.old) + 1
	*set.Spec.Replicas = CurrentReplicas(r.Deployment, set, append(r.old[:len(r.old):len(r.old)], set))
	Annotate(r.Deployment, set, revision, false)
	made, err := cluster.ReplicaSets.Create(ctx, r.Cluster, set)
	switch {
	case apierrors.IsAlreadyExists(err):
		if made = r.own(ctx, set.Name); made == nil {
			return r.collide(ctx, err)
		}
	case cluster.NamespaceEnds(err):
		return err
	case err != nil:
		return r.failMake(ctx, set.Name, err)
	default:
		if *set.Spec.Replicas > 0 {
			r.Normal(ctx, cluster.Deployments.Ref(r.Deployment), "ScalingReplicaSet",
				"Scaled up replica set %s from 0 to %d", made.Name, *set.Spec.Replicas)
		}
		if hasDeadline(r.Deployment) {
			setCondition(&r.Status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
				"NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", made.Name), r.Now()))
		}
	}
	setAnnotation(&r.ObjectMeta, revisionAnnotation, fmt.Sprint(revision))
	r.current = made
	return nil
}

// own returns the ReplicaSet with the given name if it belongs to the Deployment and has its template.
func (r *rollout) own(ctx context.Context, name string) *appsv1.ReplicaSet {
	if r.index.Fresh(ctx) != nil {
		return nil
	}
	set := cluster.ReplicaSets.Read(r.index, r.Namespace, name)
	if set == nil || !metav1.IsControlledBy(set, r.Deployment) || !sameTemplate(&r.Spec.Template, &set.Spec.Template) {
		return nil
	}
	return set
}

// collide increments the collision count, because another ReplicaSet has the name with the template's hash. The next
// reconcile uses another hash.
func (r *rollout) collide(ctx context.Context, taken error) error {
	_, err := cluster.Deployments.ReviseStatus(ctx, r.Cluster, r.was, func(now *appsv1.Deployment) {
		if now.Status.CollisionCount == nil {
			now.Status.CollisionCount = new(int32)
		}
		*now.Status.CollisionCount++
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("its hash is taken, another one is used: %w", taken)
}

// failMake records why there is no ReplicaSet.
func (r *rollout) failMake(ctx context.Context, name string, err error) error {
	message := fmt.Sprintf("Failed to create new replica set %q: %v", name, err)
	if hasDeadline(r.Deployment) {
		setCondition(&r.Status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse,
			"ReplicaSetCreateError", message, r.Now()))
		if failed := r.storeStatus(ctx, r.Status); failed != nil {
			return failed
		}
	}
	r.Warning(ctx, cluster.Deployments.Ref(r.Deployment), "ReplicaSetCreateError", "%s", message)
	return err
}

// newReplicaSet returns the ReplicaSet of a Deployment's template, of no replicas.
func newReplicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := replica.Hash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	name := d.Name
	if most := validation.DNS1123SubdomainMaxLength - len("-") - len(hash); len(name) > most {
		name = name[:most]
	}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-" + hash, Namespace: d.Namespace, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(d, cluster.Deployments.GroupVersionKind()),
			},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: template,
		},
	}
}

func with(in map[string]string, key, value string) map[string]string {
	out := maps.Clone(in)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// resize changes the replicas of a ReplicaSet and reports whether it has. If always is set, the sizes that it remembers
// of its Deployment are written too if only they have changed.
func (r *rollout) resize(ctx context.Context, set *appsv1.ReplicaSet, to int32, always bool) (bool, error) {
	from := *set.Spec.Replicas
	remember := annotateSize(r.Deployment, set.DeepCopy())
	if from == to && !(always && remember) {
		return false, nil
	}
	updated, err := cluster.ReplicaSets.Revise(ctx, r.Cluster, set, func(now *appsv1.ReplicaSet) {
		*now.Spec.Replicas = to
		annotateSize(r.Deployment, now)
	})
	if err != nil {
		return false, err
	}
	r.replace(updated)
	if from == to {
		return false, nil
	}
	direction := "down"
	if from < to {
		direction = "up"
	}
	r.Normal(ctx, cluster.Deployments.Ref(r.Deployment), "ScalingReplicaSet",
		"Scaled %s replica set %s from %d to %d", direction, set.Name, from, to)
	return true, nil
}

// replace replaces a ReplicaSet of the rollout by its newer state.
func (r *rollout) replace(set *appsv1.ReplicaSet) {
	if r.current != nil && r.current.Name == set.Name {
		r.current = set
	}
	for i := range r.old {
		if r.old[i].Name == set.Name {
			r.old[i] = set
		}
	}
}

// cleanUp deletes the oldest of old ReplicaSets that have no pods, but for as many as the history is to keep.
func (r *rollout) cleanUp(ctx context.Context, old []*appsv1.ReplicaSet) error {
	for _, set := range surplusHistory(r.Deployment, old) {
		if err := cluster.ReplicaSets.Delete(ctx, r.Cluster, set, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return err
		}
		r.old = slices.DeleteFunc(r.old, func(s *appsv1.ReplicaSet) bool { return s.Name == set.Name })
	}
	return nil
}

// rollBack restores the template of the revision in the rollback annotation; 0 means the previous one.
func (r *rollout) rollBack(ctx context.Context) error {
	if err := r.syncCurrent(ctx); err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	to, _ := rollbackRevision(r.Deployment)
	if to == 0 {
		if to = lastRevision(r.all()); to == 0 {
			return r.giveUpRollback(ctx, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
		}
	}
	at := slices.IndexFunc(r.all(), func(set *appsv1.ReplicaSet) bool { return revisionOf(set) == to })
	if at < 0 {
		return r.giveUpRollback(ctx, "DeploymentRollbackRevisionNotFound",
			"Unable to find the revision to rollback to.")
	}
	set := r.all()[at]
	if sameTemplate(&r.Spec.Template, &set.Spec.Template) {
		return r.giveUpRollback(ctx, "DeploymentRollbackTemplateUnchanged", fmt.Sprintf(
			"The rollback revision contains the same template as current deployment %q", r.Name))
	}
	_, err := cluster.Deployments.Revise(ctx, r.Cluster, r.was, func(now *appsv1.Deployment) {
		now.Spec.Template = *set.Spec.Template.DeepCopy()
		delete(now.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		takeAnnotations(now, set)
		delete(now.Annotations, appsv1.DeprecatedRollbackTo)
	})
	if err == nil {
		r.Normal(ctx, cluster.Deployments.Ref(r.Deployment), "DeploymentRollback",
			"Rolled back deployment %q to revision %d", r.Name, to)
	}
	return err
}

func (r *rollout) giveUpRollback(ctx context.Context, reason, message string) error {
	r.Warning(ctx, cluster.Deployments.Ref(r.Deployment), reason, "%s", message)
	_, err := cluster.Deployments.Revise(ctx, r.Cluster, r.was, func(now *appsv1.Deployment) {
		delete(now.Annotations, appsv1.DeprecatedRollbackTo)
	})
	return err
}
