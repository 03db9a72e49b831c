package apps

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// sets maintains the number of pods of ReplicaSets, or of ReplicationControllers, which it converts to ReplicaSets.
type sets[K setKind] struct {
	*cluster.Cluster
	index *cluster.Index
	kind  K
}

// setKind is one of the two kinds.
type setKind interface {
	prefix() string
	name() string
	// countsTerminating is true of the kind that has status.terminatingReplicas.
	countsTerminating() bool
	read(x *cluster.Index, namespace, name string) *appsv1.ReplicaSet
	claimant(x *cluster.Index, set *appsv1.ReplicaSet, selector labels.Selector) cluster.Claimant
	about(set *appsv1.ReplicaSet) corev1.ObjectReference
	// related returns the sets that have the same controller, with the set itself.
	related(x *cluster.Index, set *appsv1.ReplicaSet) []*appsv1.ReplicaSet
	needMatching(x *cluster.Index, ev *watchcache.Event, need func(string))
	writeStatus(ctx context.Context, c *cluster.Cluster, set *appsv1.ReplicaSet) error
}

func (s *sets[K]) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case ev.Collection.Prefix() == s.kind.prefix():
		if ev.Type != watchcache.Deleted {
			need(ev.Entry.Key())
		}
	case cluster.Pods.Is(ev):
		cluster.NeedOwner(ev, s.kind.name(), need)
		s.kind.needMatching(s.index, ev, need)
	}
}

func (s *sets[K]) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	set := s.kind.read(s.index, namespace, name)
	if set == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil // validation rejects it; another server version may not have
	}
	of := s.kind.claimant(s.index, set, selector)
	pods, err := s.look(ctx, set, of)
	if err != nil {
		return err
	}
	var failed error
	if set.DeletionTimestamp == nil {
		failed = s.manage(ctx, set, of, pods)
	}
	now := s.Now()
	if pods.active != nil {
		pods.replicas = replicasOf(set, pods.active, now)
	}
	status := setStatus(set, pods.replicas, failed, now)
	if s.kind.countsTerminating() {
		status.TerminatingReplicas = new(pods.terminating)
	}
	if err := s.store(ctx, set, status); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case set.Spec.MinReadySeconds > 0 && status.ReadyReplicas != status.AvailableReplicas:
		return control.Again(max(replica.NextAvailable(pods.active, set.Spec.MinReadySeconds, now), time.Millisecond))
	}
	return nil
}

// podsOf are the pods of a set.
type podsOf struct {
	replicas
	terminating int32
	active      []*corev1.Pod // nil if they were only counted, or there are none
}

// look returns the pods of a set, after adopting and releasing some. For a set without surplus pods it only counts
// them: there may be thousands, and each change of one requests a reconcile.
func (s *sets[K]) look(ctx context.Context, set *appsv1.ReplicaSet, of cluster.Claimant) (p podsOf, err error) {
	if set.DeletionTimestamp == nil && set.Spec.MinReadySeconds == 0 {
		template := labels.SelectorFromSet(set.Spec.Template.Labels)
		n, ok := s.index.Count(set.Namespace, string(set.UID), of.Selects, template)
		if ok && n.Active <= *set.Spec.Replicas {
			p.replicas = replicas{all: n.Active, labeled: n.Active, ready: n.Ready, available: n.Ready}
			p.terminating = n.Terminating
			return p, nil
		}
	}
	all := s.index.ControlledBriefly(set.Namespace, string(set.UID), true)
	p.active, err = cluster.Pods.Claim(ctx, s.Cluster, of, replica.Where(all, replica.IsActive), nil)
	p.all = int32(len(p.active))
	p.terminating = int32(len(replica.Where(all, func(p *corev1.Pod) bool {
		return replica.IsTerminating(p) && metav1.IsControlledBy(p, set) && of.Selects.Matches(labels.Set(p.Labels))
	})))
	return p, err
}

// Rest implements control.Pacer.
func (s *sets[K]) Rest(key string) time.Duration { return s.index.RestOf(s.kind.prefix(), key) }

// manage creates missing pods or deletes surplus ones.
func (s *sets[K]) manage(
	ctx context.Context, set *appsv1.ReplicaSet, of cluster.Claimant, pods podsOf,
) error {
	maker := cluster.Maker{Cluster: s.Cluster, About: s.kind.about(set)}
	missing := int(*set.Spec.Replicas - pods.all)
	if missing > 0 {
		_, err := cluster.SlowStart(min(missing, cluster.BurstMost), func(int) error {
			return maker.Create(ctx, replica.FromTemplate(&set.Spec.Template, set, of.Ref))
		})
		return err
	}
	surplus := min(-missing, cluster.BurstMost)
	if surplus == 0 {
		return nil
	}
	if surplus < len(pods.active) {
		replica.ByRemovalAmong(pods.active, s.relatedPods(set), s.Now())
	}
	return maker.DeleteAll(ctx, pods.active[:surplus])
}

// relatedPods returns the pods of all sets that have the same controller.
func (s *sets[K]) relatedPods(set *appsv1.ReplicaSet) (out []*corev1.Pod) {
	seen := map[string]bool{}
	for _, other := range s.kind.related(s.index, set) {
		selector, err := metav1.LabelSelectorAsSelector(other.Spec.Selector)
		if err != nil {
			continue
		}
		for _, p := range cluster.Pods.Selected(s.index, other.Namespace, selector) {
			if !seen[p.Name] {
				seen[p.Name] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// store writes a status if it has changed.
func (s *sets[K]) store(ctx context.Context, set *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	if sameSetStatus(set.Status, status) && set.Generation == set.Status.ObservedGeneration {
		return nil
	}
	set = set.DeepCopy()
	set.Status = status
	set.Status.ObservedGeneration = set.Generation
	return control.IgnoreNotFound(s.kind.writeStatus(ctx, s.Cluster, set))
}
