package apps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// deployments rolls out Deployments: it creates and scales their ReplicaSets.
type deployments struct {
	*cluster.Cluster
	index *cluster.Index
}

func (d *deployments) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Deployments.Is(ev):
		if ev.Type != watchcache.Deleted {
			need(ev.Entry.Key())
		}
	case cluster.ReplicaSets.Is(ev):
		cluster.NeedOwner(ev, cluster.Deployments.Kind, need)
		cluster.Deployments.NeedMatching(d.index, ev,
			func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector }, need)
	case cluster.Pods.Is(ev) && ev.Type == watchcache.Deleted:
		// The Recreate strategy waits for the last old pod.
		set := cluster.Owner(ev.Entry)
		if set.Kind != cluster.ReplicaSets.Kind {
			return
		}
		e := d.View.Collection(cluster.ReplicaSets.Prefix).Snapshot().Get(ev.Entry.Namespace, set.Name)
		if e == nil {
			return
		}
		if of := cluster.Owner(e); of.Kind == cluster.Deployments.Kind {
			need(e.Namespace + "/" + of.Name)
		}
	}
}

func (d *deployments) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	was := cluster.Deployments.Read(d.index, namespace, name)
	if was == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(was.Spec.Selector)
	if err != nil {
		return nil
	}
	all := cluster.ReplicaSets.Controlled(d.index, namespace, string(was.UID), true)
	by := cluster.Deployments.Claimant(d.index, was, selector)
	sets, err := cluster.ReplicaSets.Claim(ctx, d.Cluster, by, all, nil)
	if err != nil {
		return err
	}
	r := &rollout{deployments: d, Deployment: was.DeepCopy(), was: was}
	r.take(sets)
	return cluster.Soon(r.reconcile(ctx))
}

// rollout is one reconcile of a Deployment. It changes status and annotations in memory, and writes them at the end.
type rollout struct {
	*deployments
	*appsv1.Deployment
	was *appsv1.Deployment
	// current is the ReplicaSet of the template, or nil if there is none yet; old are all others.
	current *appsv1.ReplicaSet
	old     []*appsv1.ReplicaSet
}

func (r *rollout) take(sets []*appsv1.ReplicaSet) {
	byCreation(sets)
	for _, set := range sets {
		if r.current == nil && sameTemplate(&set.Spec.Template, &r.Spec.Template) {
			r.current = set
			continue
		}
		r.old = append(r.old, set)
	}
}

// all returns all ReplicaSets, the current one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.current == nil {
		return r.old
	}
	return append(r.old[:len(r.old):len(r.old)], r.current)
}

func (r *rollout) reconcile(ctx context.Context) error {
	if r.DeletionTimestamp != nil {
		if err := r.syncCurrent(ctx); err != nil {
			return err
		}
		return r.storeStatus(ctx, deploymentStatus(r.Deployment, r.current, r.all(), r.Now()))
	}
	notePause(r.Deployment, r.Now())
	if !r.Spec.Paused {
		if _, ok := rollbackRevision(r.Deployment); ok {
			return r.rollBack(ctx)
		}
	}
	if err := r.syncCurrent(ctx); err != nil {
		return err
	}
	switch {
	case r.Spec.Paused || scaled(r.Deployment, r.all()):
		return r.scale(ctx)
	case r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return r.recreate(ctx)
	}
	return r.roll(ctx)
}

// syncCurrent copies annotations and settings of the Deployment to the current ReplicaSet, if there is one.
func (r *rollout) syncCurrent(ctx context.Context) error {
	if r.current == nil {
		return nil
	}
	set := r.current.DeepCopy()
	if Annotate(r.Deployment, set, maxRevision(r.old)+1, true) || set.Spec.MinReadySeconds != r.Spec.MinReadySeconds {
		updated, err := cluster.ReplicaSets.Revise(ctx, r.Cluster, r.current, func(now *appsv1.ReplicaSet) {
			Annotate(r.Deployment, now, maxRevision(r.old)+1, true)
			now.Spec.MinReadySeconds = r.Spec.MinReadySeconds
		})
		if err != nil {
			return err
		}
		r.current = updated
	}
	setAnnotation(&r.ObjectMeta, revisionAnnotation, r.current.Annotations[revisionAnnotation])
	if hasDeadline(r.Deployment) && condition(&r.Status, appsv1.DeploymentProgressing) == nil {
		setCondition(&r.Status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet",
			fmt.Sprintf("Found new replica set %q", r.current.Name), r.Now()))
	}
	return nil
}

// scale distributes a new size over the ReplicaSets; a paused Deployment does nothing else.
func (r *rollout) scale(ctx context.Context) error {
	before := slices.Clone(r.old)
	for _, s := range scaleAll(r.Deployment, r.current, r.old) {
		if _, err := r.resize(ctx, s.set, s.replicas, s.always); err != nil {
			return err
		}
	}
	if r.Spec.Paused {
		if _, back := rollbackRevision(r.Deployment); !back {
			// Kubernetes uses the sizes from before, so a history limit of 0 deletes the ReplicaSet that has just got
			// the pods of a paused Deployment.
			if err := r.cleanUp(ctx, before); err != nil {
				return err
			}
		}
	}
	return r.storeStatus(ctx, deploymentStatus(r.Deployment, r.current, r.all(), r.Now()))
}

// roll replaces old pods step by step.
func (r *rollout) roll(ctx context.Context) error {
	if err := r.make(ctx); err != nil {
		return err
	}
	grown, err := r.resize(ctx, r.current, CurrentReplicas(r.Deployment, r.current, r.all()), false)
	if err != nil || grown {
		return r.finish(ctx, err)
	}
	shrunk := false
	for _, s := range shrinkOld(r.Deployment, r.current, r.old) {
		done, err := r.resize(ctx, s.set, s.replicas, false)
		if err != nil {
			return err
		}
		shrunk = shrunk || done
	}
	if !shrunk && isComplete(r.Deployment, &r.Status) {
		if err := r.cleanUp(ctx, r.old); err != nil {
			return err
		}
	}
	return r.finish(ctx, nil)
}

// recreate waits until the old pods are gone before it creates new ones.
func (r *rollout) recreate(ctx context.Context) error {
	shrunk := false
	for _, set := range active(r.old) {
		done, err := r.resize(ctx, set, 0, false)
		if err != nil {
			return err
		}
		shrunk = shrunk || done
	}
	if shrunk || r.oldPodsRun() {
		return r.finish(ctx, nil)
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	if _, err := r.resize(ctx, r.current, *r.Spec.Replicas, false); err != nil {
		return err
	}
	if isComplete(r.Deployment, &r.Status) {
		if err := r.cleanUp(ctx, r.old); err != nil {
			return err
		}
	}
	return r.finish(ctx, nil)
}

// oldPodsRun reports whether a pod of an old ReplicaSet may still run.
func (r *rollout) oldPodsRun() bool {
	for _, set := range r.old {
		if set.Status.Replicas > 0 {
			return true
		}
		for _, p := range cluster.Pods.Controlled(r.index, set.Namespace, string(set.UID), false) {
			if !replica.HasEnded(p) {
				return true
			}
		}
	}
	return false
}

// finish writes the status of a rollout, and schedules a check of the progress deadline.
func (r *rollout) finish(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	status := rolloutStatus(r.Deployment, r.current, r.all(), r.Now())
	unchanged := equality.Semantic.DeepEqual(r.was.Status, status)
	if err := r.storeStatus(ctx, status); err != nil || !unchanged {
		return err
	}
	if after, ok := nextProgressCheck(r.Deployment, &status, r.Now()); ok {
		return control.Again(max(after+time.Second, time.Millisecond))
	}
	return nil
}

// storeStatus writes a status, with the revision annotation, if they are new.
func (r *rollout) storeStatus(ctx context.Context, status appsv1.DeploymentStatus) error {
	revision := r.Annotations[revisionAnnotation]
	if equality.Semantic.DeepEqual(r.was.Status, status) && revision == r.was.Annotations[revisionAnnotation] {
		return nil
	}
	_, err := cluster.Deployments.ReviseStatus(ctx, r.Cluster, r.was, func(now *appsv1.Deployment) {
		now.Status = status
		if revision != "" {
			setAnnotation(&now.ObjectMeta, revisionAnnotation, revision)
		}
	})
	return err
}
