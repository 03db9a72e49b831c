// Package scheduler simulates kube-scheduler: it assigns nodes to pods with the scheduler name default-scheduler.
//
// Its cache of nodes and pods is a model that follows the view's events (model.go). A decision is pure: filters
// (filter.go, affinity.go, spread.go) give the reasons that exclude a node in kube-scheduler's words, then scores rank
// the rest (score.go, attraction.go, evenness.go). If no node is left, pods of lower priority may be preempted
// (preempt.go). Decisions are made one after another; their bindings are written concurrently. A pod is in the model
// before its binding is written, so the next decision counts it. Source: pkg/scheduler of Kubernetes 1.36;
// test/oracle-builtins/workloads compares both.
package scheduler

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

var podsResource = ref.Pods.GroupResource()

// loop is the name of the loop. Operators that run their own scheduler disable it with --controllers.
const loop = "simulated-scheduler"

// binders is how many bindings are written at a time.
const binders = 4

// Part brings the scheduler.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{Name: "simulated scheduler", Loops: []part.Loop{
		{Name: loop, Workers: binders, Pooled: true, New: func(h *part.Host) control.Reconciler {
			return newScheduler(h, shared.Of(h))
		}},
	}}
}

// scheduler is the loop. A key is that of a pod.
type scheduler struct {
	*cluster.Cluster
	index *cluster.Index
	// mu is held by each decision, and by the view's goroutine while it brings the model up to date.
	mu      sync.Mutex
	model   *model
	waiting *waiting
	// promised are the pods with a node in the model that wait for their claims to be bound.
	promised map[string]promise
}

func newScheduler(h *part.Host, index *cluster.Index) *scheduler {
	s := &scheduler{
		Cluster: cluster.Scheduler(h), index: index, model: newModel(), waiting: newWaiting(),
		promised: map[string]promise{},
	}
	s.model.budgets, s.model.refresh = s.budgets, func(p *podInfo) {
		if pod := cluster.Pods.Read(index, p.namespace, p.name); pod != nil && string(pod.UID) == p.uid {
			p.look(pod)
		}
	}
	return s
}

// Observe updates the model, and requests pods without a node. Events that may make room request the waiting pods.
func (s *scheduler) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Nodes.Is(ev):
		var n *corev1.Node
		if ev.Type != watchcache.Deleted {
			n = cluster.Nodes.Decode(s.Cluster, ev.Entry)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.model.setNode(ev.Entry.Name, n)
		s.retry(need)
	case cluster.Pods.Is(ev):
		s.observePod(ev, need)
	case cluster.Namespaces.Is(ev), cluster.PersistentVolumeClaims.Is(ev), cluster.PersistentVolumes.Is(ev),
		cluster.StorageClasses.Is(ev), cluster.CSINodes.Is(ev), cluster.VolumeAttachments.Is(ev):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retry(need)
	}
}

func (s *scheduler) retry(need func(string)) {
	s.waiting.each(need)
	for key := range s.promised {
		need(key)
	}
}

func (s *scheduler) observePod(ev *watchcache.Event, need func(string)) {
	e := ev.Entry
	node, _ := e.Field("spec.nodeName")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch gone := ev.Type == watchcache.Deleted || ended(e); {
	case gone:
		s.waiting.remove(e.Key())
		delete(s.promised, e.Key())
		delete(s.model.nominated, e.Key())
		if s.model.remove(e.Key()) {
			s.retry(need)
		}
	case node == "":
		if promised, ok := s.promised[e.Key()]; ok && promised.uid == string(e.UID) && !e.Deleting {
			return // it has a node already
		}
		delete(s.promised, e.Key())
		s.model.remove(e.Key()) // it was recreated
		if name, _ := e.Field("spec.schedulerName"); name == corev1.DefaultSchedulerName && !e.Deleting {
			if ev.Prev == nil || !s.waiting.has(e.Key()) || ev.Prev.Generation != e.Generation {
				need(e.Key())
			}
		} else {
			s.waiting.remove(e.Key())
		}
	default:
		s.waiting.remove(e.Key())
		delete(s.promised, e.Key())
		if had := s.model.pods[e.Key()]; had != nil && had.uid == e.UID && had.node == node &&
			had.generation == e.Generation && sameLabels(had.labels, e.Labels) {
			return
		}
		if pod := cluster.Pods.ReadEntry(s.index, e); pod != nil {
			s.model.add(digest(pod), node)
			s.retry(need)
		}
	}
}

func ended(e *watchcache.Entry) bool {
	phase, _ := e.Field("status.phase")
	return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
}

func (s *scheduler) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	pod := cluster.Pods.ReadOnce(s.index, namespace, name)
	if pod == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil ||
		pod.Spec.SchedulerName != corev1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	info := digest(pod)
	info.peers = s.peers(pod)
	if len(info.claims) > 0 { // claims reserved for other pods must be visible
		if err := s.View.FreshOwn(ctx); err != nil {
			return err
		}
	}
	has, why := s.volumesOf(info)
	info.volumes = has
	s.mu.Lock()
	if had := s.model.pods[key]; had != nil && had.uid == info.uid {
		node, done := s.keep(key, had, has, why)
		if node != "" {
			s.mu.Unlock()
			return s.finish(ctx, pod, node)
		}
		if !done { // its binding is in progress
			promised, waits := s.promised[key]
			s.mu.Unlock()
			if waits {
				return control.Again(promised.until.Sub(s.Now()))
			}
			return nil
		}
	}
	d := s.decide(info, why)
	var chosen *corev1.Node
	var outranked []*podInfo
	if info.volumes = nil; d.node != "" {
		chosen = s.model.nodes[d.node].node
		s.model.add(info, d.node)
		s.waiting.remove(key)
		if has != nil && len(has.open) > 0 {
			s.promised[key] = promise{info.uid, d.node, s.Now().Add(bindingTime)}
		}
	} else {
		s.waiting.add(key, info.priority)
		outranked = s.nominate(info, d)
	}
	s.mu.Unlock()
	if d.node == "" {
		return s.refuse(ctx, pod, d, outranked)
	}
	if has != nil && len(has.open) > 0 {
		if err := s.reserve(ctx, has, chosen); err != nil {
			s.forget(key)
			return cluster.Soon(control.IgnoreNotFound(err))
		}
		return control.Again(bindingTime) // the binding of its claims requests it earlier
	}
	return s.finish(ctx, pod, d.node)
}

// keep checks a pod that has a node in the model. It returns the node if the pod is to be bound now. lost is true if
// the pod lost the node because a claim cannot be bound there. It needs the lock.
func (s *scheduler) keep(key string, had *podInfo, has *volumes, why string) (node string, lost bool) {
	promised, ok := s.promised[key]
	if !ok {
		return "", false
	}
	all, broken := false, true
	if i := s.model.nodes[promised.node]; why == "" && has != nil && i != nil && i.node != nil {
		all, broken = has.satisfied(promised.node)
		broken = broken || all && len(has.check(i.node)) > 0
	}
	switch {
	case broken, !all && !s.Now().Before(promised.until):
		delete(s.promised, key)
		s.model.remove(key)
		return "", true
	case all:
		delete(s.promised, key)
		return had.node, false
	}
	return "", false
}

func (s *scheduler) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.promised, key)
	s.model.remove(key)
}

// finish binds a pod to a node.
func (s *scheduler) finish(ctx context.Context, pod *corev1.Pod, node string) error {
	if err := s.bind(ctx, pod, node); err != nil {
		s.forget(pod.Namespace + "/" + pod.Name)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // it is gone, or another scheduler was faster
		}
		return err
	}
	s.Report(ctx, cluster.Event{
		About: cluster.Pods.Ref(pod), Type: corev1.EventTypeNormal, Reason: "Scheduled", Action: "Binding",
		Message: "Successfully assigned " + pod.Namespace + "/" + pod.Name + " to " + node,
	})
	return nil
}

// decide finds a node for a pod; a non-empty why excludes all nodes. It needs the lock.
func (s *scheduler) decide(p *podInfo, why string) decision {
	if s.model.count() > 0 && why != "" {
		return decision{because: failure{nodes: s.model.count(), first: why}.String()}
	}
	return s.model.decide(p, s.namespaceLabels)
}

// namespaceLabels returns the labels of a namespace, for the selectors of affinity terms.
func (s *scheduler) namespaceLabels(name string) map[string]string {
	if e := s.View.Collection(cluster.Namespaces.Prefix).Snapshot().Get("", name); e != nil {
		return e.Labels
	}
	return nil
}

// bind puts a pod on a node, as a POST to its binding does.
func (s *scheduler) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	call, err := s.Verbs.Call(podsResource, pod.Namespace, pod.Name, s.User)
	if err != nil {
		return err
	}
	call = call.Under("binding")
	act := s.Verbs.Action(call)
	return act.Run(ctx, s.Verbs, call, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{FieldManager: s.Manager})
}
