package apps

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// statefulSets keeps the pods of StatefulSets, each with its number, name and claims.
type statefulSets struct {
	*cluster.Cluster
	index *cluster.Index
	gates struct {
		maxUnavailable, recreate bool
	}
}

func (s *statefulSets) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.StatefulSets.Is(ev):
		if ev.Type != watchcache.Deleted {
			need(ev.Entry.Key())
		}
	case cluster.Pods.Is(ev):
		cluster.NeedOwner(ev, cluster.StatefulSets.Kind, need)
		cluster.StatefulSets.NeedMatching(s.index, ev,
			func(set *appsv1.StatefulSet) *metav1.LabelSelector { return set.Spec.Selector }, need)
	}
}

func (s *statefulSets) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	set := cluster.StatefulSets.Read(s.index, namespace, name)
	if set == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil
	}
	of := cluster.StatefulSets.Claimant(s.index, set, selector)
	revisions, err := cluster.ControllerRevisions.Claim(ctx, s.Cluster, of,
		cluster.ControllerRevisions.Controlled(s.index, namespace, string(set.UID), true), nil)
	if err != nil {
		return err
	}
	pods, err := cluster.Pods.Claim(ctx, s.Cluster, of,
		cluster.Pods.Controlled(s.index, namespace, string(set.UID), true),
		func(p *corev1.Pod) bool { parent, _ := ordinal(p); return parent == set.Name })
	if err != nil {
		return err
	}
	byRevision(revisions)
	r := &ordered{statefulSets: s, set: set, ref: of.Ref, revisions: revisions, now: s.Now()}
	if err := r.findRevisions(ctx); err != nil {
		return cluster.Soon(err)
	}
	failure := r.refuse(ctx)
	if failure == nil {
		failure = r.reconcile(ctx, pods)
		if err := r.storeStatus(ctx); err != nil && failure == nil {
			failure = err
		}
	}
	if err := r.truncateHistory(ctx, pods); err != nil && failure == nil {
		failure = err
	}
	if failure == nil && set.Spec.MinReadySeconds > 0 && r.status.ReadyReplicas != r.status.AvailableReplicas {
		return control.Again(max(replica.NextAvailable(pods, set.Spec.MinReadySeconds, r.now), time.Millisecond))
	}
	return cluster.Soon(failure)
}

// refuse returns an error if the set has a strategy with a closed feature gate, which only older data can have.
func (r *ordered) refuse(ctx context.Context) error {
	if r.gates.recreate || r.set.Spec.UpdateStrategy.Type != appsv1.RecreateStatefulSetStrategyType {
		return nil
	}
	err := fmt.Errorf("statefulset %s/%s uses Recreate strategy but feature gate %s is disabled", r.set.Namespace,
		r.set.Name, recreateGate)
	r.Warning(ctx, cluster.StatefulSets.Ref(r.set), "UnknownStrategy", "%v", err)
	return err
}

// ordered is one reconcile of a StatefulSet.
type ordered struct {
	*statefulSets
	set *appsv1.StatefulSet
	ref metav1.OwnerReference
	now time.Time
	// revisions are all revisions, the oldest first; update is the template's, current the one being replaced.
	revisions       []*appsv1.ControllerRevision
	update, current *appsv1.ControllerRevision
	// latest and former are the templates of update and current.
	latest, former corev1.PodTemplateSpec
	status         appsv1.StatefulSetStatus
}

// findRevisions finds the current and the update revision, and creates the latter if there is none.
func (r *ordered) findRevisions(ctx context.Context) error {
	collisions := int32(0)
	if n := r.set.Status.CollisionCount; n != nil {
		collisions = *n
	}
	number := int64(1)
	if n := len(r.revisions); n > 0 {
		number = r.revisions[n-1].Revision + 1
	}
	want, err := newRevision(r.set, r.ref, number, collisions)
	if err != nil {
		return err
	}
	var equal *appsv1.ControllerRevision
	for _, old := range r.revisions {
		if bytes.Equal(old.Data.Raw, want.Data.Raw) || sameRevision(old, &r.set.Spec.Template) {
			equal = old
		}
		if old.Name == r.set.Status.CurrentRevision {
			r.current = old
		}
	}
	switch last := len(r.revisions) - 1; {
	case equal == nil:
		if r.update, err = r.makeRevision(ctx, want, &collisions); err != nil {
			return err
		}
	case equal == r.revisions[last]:
		r.update = equal
	default:
		r.update, err = cluster.ControllerRevisions.Update(ctx, r.Cluster, equal,
			func(now *appsv1.ControllerRevision) error {
				now.Revision = number
				return nil
			})
		if err != nil {
			return err
		}
	}
	if r.current == nil {
		r.current = r.update
	}
	r.status = appsv1.StatefulSetStatus{
		ObservedGeneration: r.set.Generation, CurrentRevision: r.current.Name, UpdateRevision: r.update.Name,
		CollisionCount: &collisions, Conditions: r.set.Status.Conditions,
	}
	if r.latest, err = templateOf(r.update); err == nil {
		r.former, err = templateOf(r.current)
	}
	return err
}

// sameRevision reports whether a revision, as another version may have written it, holds a template.
func sameRevision(r *appsv1.ControllerRevision, template *corev1.PodTemplateSpec) bool {
	held, err := templateOf(r)
	return err == nil && sameTemplate(&held, template)
}

// makeRevision stores a revision, under another name if its own is that of another.
func (r *ordered) makeRevision(
	ctx context.Context, want *appsv1.ControllerRevision, collisions *int32,
) (*appsv1.ControllerRevision, error) {
	for {
		want.Name = RevisionName(r.set.Name, RevisionHash(want.Data.Raw, *collisions))
		made, err := cluster.ControllerRevisions.Create(ctx, r.Cluster, want.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		if err := r.index.Fresh(ctx); err != nil {
			return nil, err
		}
		there := cluster.ControllerRevisions.Read(r.index, want.Namespace, want.Name)
		if there != nil && bytes.Equal(there.Data.Raw, want.Data.Raw) {
			return there, nil
		}
		*collisions++
	}
}

// truncateHistory deletes the oldest revisions without pods beyond revisionHistoryLimit.
func (r *ordered) truncateHistory(ctx context.Context, pods []*corev1.Pod) error {
	live := map[string]bool{r.update.Name: true, r.current.Name: true}
	for _, p := range pods {
		live[p.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	var dead []*appsv1.ControllerRevision
	for _, old := range r.revisions {
		if !live[old.Name] {
			dead = append(dead, old)
		}
	}
	for _, old := range dead[:max(0, len(dead)-int(*r.set.Spec.RevisionHistoryLimit))] {
		if err := deleteRevision(ctx, r.Cluster, old); err != nil {
			return err
		}
	}
	return nil
}

// storeStatus writes the status if it has changed.
func (r *ordered) storeStatus(ctx context.Context) error {
	s, was := &r.status, &r.set.Status
	want := *r.set.Spec.Replicas
	if s.UpdatedReplicas == want && s.ReadyReplicas == want && s.Replicas == want { // with every strategy since 1.37
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
		r.recreated()
	}
	if s.ObservedGeneration <= was.ObservedGeneration && s.Replicas == was.Replicas &&
		s.CurrentReplicas == was.CurrentReplicas && s.ReadyReplicas == was.ReadyReplicas &&
		s.UpdatedReplicas == was.UpdatedReplicas && s.AvailableReplicas == was.AvailableReplicas &&
		s.CurrentRevision == was.CurrentRevision && s.UpdateRevision == was.UpdateRevision &&
		equality.Semantic.DeepEqual(s.Conditions, was.Conditions) {
		return nil
	}
	_, err := cluster.StatefulSets.UpdateStatus(ctx, r.Cluster, r.set, func(now *appsv1.StatefulSet) error {
		now.Status = *s
		return nil
	})
	return control.IgnoreNotFound(err)
}
