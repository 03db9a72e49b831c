package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// findRevisions finds the revision of the template, and creates it if there is none.
func (s *spread) findRevisions(ctx context.Context) error {
	data, err := RevisionData(&s.set.Spec.Template)
	if err != nil {
		return err
	}
	all, err := cluster.ControllerRevisions.Claim(ctx, s.Cluster, s.by,
		cluster.ControllerRevisions.Controlled(s.index, s.set.Namespace, string(s.set.UID), true), nil)
	if err != nil {
		return err
	}
	var same []*appsv1.ControllerRevision
	next := int64(1)
	for _, r := range all {
		if r, err = s.label(ctx, r); err != nil {
			return err
		}
		if bytes.Equal(r.Data.Raw, data) {
			same = append(same, r)
			continue
		}
		s.old = append(s.old, r)
		next = max(next, r.Revision+1)
	}
	if len(same) == 0 {
		s.current, err = s.makeRevision(ctx, data, next)
	} else {
		s.current, err = s.keepOne(ctx, same)
	}
	if err == nil && s.current.Revision < next {
		s.current, err = cluster.ControllerRevisions.Update(ctx, s.Cluster, s.current,
			func(now *appsv1.ControllerRevision) error {
				now.Revision = next
				return nil
			})
	}
	if err != nil {
		return err
	}
	s.hash = s.current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	return nil
}

// label restores the hash label of a revision that has lost it, with a unique value: the revision's name.
func (s *spread) label(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if _, ok := r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]; ok {
		return r, nil
	}
	return cluster.ControllerRevisions.Update(ctx, s.Cluster, r, func(now *appsv1.ControllerRevision) error {
		now.Labels = with(now.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, now.Name)
		return nil
	})
}

// makeRevision stores the revision of the template.
func (s *spread) makeRevision(ctx context.Context, data []byte, number int64) (*appsv1.ControllerRevision, error) {
	hash := replica.Hash(&s.set.Spec.Template, s.set.Status.CollisionCount)
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Namespace, Name: s.set.Name + "-" + hash, Annotations: maps.Clone(s.set.Annotations),
			Labels:          with(s.set.Spec.Template.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, hash),
			OwnerReferences: []metav1.OwnerReference{s.by.Ref},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
	made, err := cluster.ControllerRevisions.Create(ctx, s.Cluster, r)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	if fresh := s.index.Fresh(ctx); fresh != nil {
		return nil, fresh
	}
	there := cluster.ControllerRevisions.Read(s.index, r.Namespace, r.Name)
	if there != nil && bytes.Equal(there.Data.Raw, data) {
		return there, nil
	}
	_, counted := cluster.DaemonSets.UpdateStatus(ctx, s.Cluster, s.set, func(now *appsv1.DaemonSet) error {
		if now.Status.CollisionCount == nil {
			now.Status.CollisionCount = new(int32)
		}
		*now.Status.CollisionCount++
		return nil
	})
	return nil, errors.Join(counted, fmt.Errorf("its hash is taken, another one is used: %w", err))
}

// keepOne returns the newest of revisions of the same template; the others are deleted, and their pods become its.
func (s *spread) keepOne(ctx context.Context, same []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	kept := slices.MaxFunc(same, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	if len(same) == 1 {
		return kept, nil
	}
	hash := kept.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	for _, p := range s.all {
		if p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash {
			continue
		}
		_, err := cluster.Pods.Update(ctx, s.Cluster, p, func(now *corev1.Pod) error {
			now.Labels = with(now.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, hash)
			return nil
		})
		if err := control.IgnoreNotFound(err); err != nil {
			return nil, err
		}
	}
	for _, r := range same {
		if r.Name == kept.Name {
			continue
		}
		if err := deleteRevision(ctx, s.Cluster, r); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// truncateHistory deletes the oldest revisions without pods beyond revisionHistoryLimit.
func (s *spread) truncateHistory(ctx context.Context) error {
	surplus := len(s.old) - int(*s.set.Spec.RevisionHistoryLimit)
	live := map[string]bool{}
	for _, p := range s.all {
		live[p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
	}
	byRevision(s.old)
	for _, r := range s.old {
		if surplus <= 0 {
			break
		}
		if live[r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] {
			continue
		}
		if err := deleteRevision(ctx, s.Cluster, r); err != nil {
			return err
		}
		surplus--
	}
	return nil
}
