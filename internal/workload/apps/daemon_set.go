package apps

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// daemonSets runs one pod of each DaemonSet on each eligible node.
type daemonSets struct {
	*cluster.Cluster
	index *cluster.Index
	// pauses are the pauses before failed pods are deleted.
	pauses pauses
}

func (d *daemonSets) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.DaemonSets.Is(ev):
		if ev.Type != watchcache.Deleted {
			need(ev.Entry.Key())
		}
	case cluster.Pods.Is(ev):
		cluster.NeedOwner(ev, cluster.DaemonSets.Kind, need)
		cluster.DaemonSets.NeedMatching(d.index, ev,
			func(set *appsv1.DaemonSet) *metav1.LabelSelector { return set.Spec.Selector }, need)
	case cluster.ControllerRevisions.Is(ev): // a deleted or changed revision is restored
		if ev.Prev != nil || ev.Type == watchcache.Deleted {
			cluster.NeedOwner(ev, cluster.DaemonSets.Kind, need)
		}
		cluster.DaemonSets.NeedMatching(d.index, ev,
			func(set *appsv1.DaemonSet) *metav1.LabelSelector { return set.Spec.Selector }, need)
	case cluster.Nodes.Is(ev) && (ev.Prev == nil || ev.Type == watchcache.Deleted || nodeDiffers(ev)):
		d.View.Collection(cluster.DaemonSets.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			need(e.Key())
			return true
		})
	}
}

// nodeDiffers reports whether a change of a node may affect the pods that it takes.
func nodeDiffers(ev *watchcache.Event) bool {
	now, _ := codec.Field(ev.Entry.JSON(), "spec")
	was, _ := codec.Field(ev.Prev.JSON(), "spec")
	return !bytes.Equal(now, was) || !maps.Equal(ev.Entry.Labels, ev.Prev.Labels)
}

// Rest implements control.Pacer.
func (d *daemonSets) Rest(key string) time.Duration {
	return d.index.RestOf(cluster.DaemonSets.Prefix, key)
}

func (d *daemonSets) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	set := cluster.DaemonSets.Read(d.index, namespace, name)
	if set == nil || set.DeletionTimestamp != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil
	}
	s := &spread{daemonSets: d, set: set, by: cluster.DaemonSets.Claimant(d.index, set, selector), now: d.Now()}
	s.nodes = cluster.Nodes.ReadAll(d.index, "")
	if err := s.claim(ctx); err != nil {
		return err
	}
	if err := s.findRevisions(ctx); err != nil {
		return cluster.Soon(err)
	}
	failure := s.reconcile(ctx)
	if err := s.claim(ctx); err != nil && failure == nil {
		failure = err
	}
	if err := s.storeStatus(ctx); err != nil && failure == nil {
		failure = err
	}
	if failure == nil && s.again > 0 {
		return control.Again(s.again)
	}
	return cluster.Soon(failure)
}

// spread is one reconcile of a DaemonSet.
type spread struct {
	*daemonSets
	set   *appsv1.DaemonSet
	by    cluster.Claimant
	now   time.Time
	nodes []*corev1.Node
	// all are all pods of the set; pods are the pods that count, by their node.
	all  []*corev1.Pod
	pods map[string][]*corev1.Pod
	// current is the revision of the template, and hash its pod label; old are all other revisions.
	current *appsv1.ControllerRevision
	hash    string
	old     []*appsv1.ControllerRevision
	// again is the time until the next reconcile, 0 for none.
	again time.Duration
}

func (s *spread) lookAfter(d time.Duration) {
	if d = max(d, time.Millisecond); s.again == 0 || d < s.again {
		s.again = d
	}
}

// claim finds the pods of the set.
func (s *spread) claim(ctx context.Context) (err error) {
	if err := s.View.FreshOwn(ctx); err != nil {
		return err
	}
	s.all, err = cluster.Pods.Claim(ctx, s.Cluster, s.by,
		cluster.Pods.Controlled(s.index, s.set.Namespace, string(s.set.UID), true), nil)
	s.pods = map[string][]*corev1.Pod{}
	for _, p := range s.all {
		if node, ok := targetNode(p); ok && !(replica.HasEnded(p) && p.DeletionTimestamp != nil) {
			s.pods[node] = append(s.pods[node], p)
		}
	}
	return err
}

// reconcile creates and deletes pods, and then replaces outdated ones.
func (s *spread) reconcile(ctx context.Context) error {
	var lacking []string
	var surplus []*corev1.Pod
	names := map[string]bool{}
	for _, node := range s.nodes {
		names[node.Name] = true
		lacks, more := s.onNode(ctx, node)
		if lacks {
			lacking = append(lacking, node.Name)
		}
		surplus = append(surplus, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		for _, p := range s.pods[name] {
			if !names[name] && p.Spec.NodeName == "" {
				surplus = append(surplus, p)
			}
		}
	}
	err := s.apply(ctx, lacking, surplus)
	rolls := s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
	if err == nil && rolls && len(lacking)+len(surplus) == 0 {
		lacking, surplus = s.roll()
		err = s.apply(ctx, lacking, surplus)
	}
	if err != nil {
		return err
	}
	return s.truncateHistory(ctx)
}

// apply creates the lacking pods and deletes the surplus ones.
func (s *spread) apply(ctx context.Context, lacking []string, surplus []*corev1.Pod) error {
	maker := cluster.Maker{Cluster: s.Cluster, About: cluster.DaemonSets.Ref(s.set)}
	_, made := cluster.SlowStart(min(len(lacking), cluster.BurstMost), func(i int) error {
		return maker.Create(ctx, daemonPod(s.set, s.by.Ref, s.hash, lacking[i]))
	})
	return errors.Join(made, maker.DeleteAll(ctx, surplus[:min(len(surplus), cluster.BurstMost)]))
}

// onNode reports whether a node lacks a pod, and returns its surplus pods.
func (s *spread) onNode(ctx context.Context, node *corev1.Node) (lacks bool, surplus []*corev1.Pod) {
	run, stay := shouldRun(s.set, node)
	pods, there := s.pods[node.Name]
	switch {
	case run && !there:
		return true, nil
	case !stay:
		return false, replica.Where(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	}
	var running []*corev1.Pod
	for _, p := range pods {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodFailed:
			if left := s.pauses.left(s.set, node.Name, s.now); left > 0 {
				s.lookAfter(left)
				continue
			}
			s.Warning(ctx, cluster.DaemonSets.Ref(s.set), "FailedDaemonPod",
				"Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, node.Name)
			surplus = append(surplus, p)
		case p.Status.Phase == corev1.PodSucceeded:
			s.Normal(ctx, cluster.DaemonSets.Ref(s.set), "SucceededDaemonPod",
				"Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, node.Name)
			surplus = append(surplus, p)
		default:
			running = append(running, p)
		}
	}
	byPlacement(running)
	if !surges(s.set) {
		if len(running) > 1 {
			surplus = append(surplus, running[1:]...)
		}
		return false, surplus
	}
	if len(running) == 0 {
		return run, surplus
	}
	if len(running) > 1 {
		surplus = append(surplus, s.outdated(running)...)
	}
	return false, surplus
}

// outdated returns the pods of a node to delete while a set surges: all but the oldest pod of the old and of the new
// template, and of these two the old one once it is not ready or the new one is available.
func (s *spread) outdated(running []*corev1.Pod) (out []*corev1.Pod) {
	var oldest, newest *corev1.Pod
	for _, p := range running {
		switch {
		case p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash && newest == nil:
			newest = p
		case p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != s.hash && oldest == nil:
			oldest = p
		default:
			out = append(out, p)
		}
	}
	if newest == nil || oldest == nil {
		return out
	}
	if !replica.IsReady(oldest) || replica.IsAvailable(newest, s.set.Spec.MinReadySeconds, s.now) {
		return append(out, oldest)
	}
	if replica.IsReady(newest) { // Kubernetes' controller waits for another event
		s.lookAfter(replica.NextAvailable([]*corev1.Pod{newest}, s.set.Spec.MinReadySeconds, s.now))
	}
	return out
}

// storeStatus computes the status and writes it if it has changed.
func (s *spread) storeStatus(ctx context.Context) error {
	status := s.set.Status.DeepCopy()
	status.ObservedGeneration = s.set.Generation
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled = 0, 0, 0
	status.NumberReady, status.UpdatedNumberScheduled, status.NumberAvailable = 0, 0, 0
	for _, node := range s.nodes {
		run, _ := shouldRun(s.set, node)
		pods := s.pods[node.Name]
		switch {
		case !run && len(pods) > 0:
			status.NumberMisscheduled++
		case run:
			status.DesiredNumberScheduled++
		}
		if !run || len(pods) == 0 {
			continue
		}
		status.CurrentNumberScheduled++
		byPlacement(pods)
		if replica.IsReady(pods[0]) {
			status.NumberReady++
		}
		if replica.IsAvailable(pods[0], s.set.Spec.MinReadySeconds, s.now) {
			status.NumberAvailable++
		}
		if s.isUpdated(pods[0]) {
			status.UpdatedNumberScheduled++
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	if s.set.Spec.MinReadySeconds > 0 && status.NumberReady != status.NumberAvailable {
		s.lookAfter(replica.NextAvailable(s.all, s.set.Spec.MinReadySeconds, s.now))
	}
	if sameDaemonStatus(status, &s.set.Status) {
		return nil
	}
	_, err := cluster.DaemonSets.UpdateStatus(ctx, s.Cluster, s.set, func(now *appsv1.DaemonSet) error {
		now.Status = *status
		return nil
	})
	return control.IgnoreNotFound(err)
}

func sameDaemonStatus(a, b *appsv1.DaemonSetStatus) bool {
	x, y := *a, *b
	x.Conditions, y.Conditions, x.CollisionCount, y.CollisionCount = nil, nil, nil, nil
	return x.ObservedGeneration == y.ObservedGeneration && x.String() == y.String()
}
