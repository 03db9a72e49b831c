// Package scheduler simulates kube-scheduler: it finds nodes for pods whose scheduler is default-scheduler, and leaves
// those of others alone.
//
// What it knows of nodes and the pods on them is a model that the view's events keep (model.go). A decision is pure:
// filters (filter.go, affinity.go, spread.go) that say why a node is out in kube-scheduler's words, then a score
// (score.go); if no node is left, pods of less priority may have to go (preempt.go). Decisions are made one after
// another; the bindings that follow from them are written side by side. A decided pod is in the model before its
// binding is written, so the next decision counts it. Rules: pkg/scheduler of Kubernetes 1.36.
package scheduler

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

var podsResource = catalog.GroupResource{Resource: "pods"}

// loop is the name of the loop, which --controllers switches off for those who run a scheduler of their own.
const loop = "simulated-scheduler"

// binders is how many bindings are written at a time.
const binders = 4

// Part brings the scheduler.
func Part() part.Part {
	return part.Part{Name: "simulated scheduler", Loops: []part.Loop{
		{Name: loop, Workers: binders, Pooled: true, New: func(h *part.Host) control.Reconciler {
			return newScheduler(h)
		}},
	}}
}

// scheduler is the loop. A key is that of a pod.
type scheduler struct {
	*cluster.Cluster
	// mu is held by each decision, and by the view's goroutine while it brings the model up to date.
	mu      sync.Mutex
	model   *model
	waiting map[string]bool // the pods for which there was no node
}

func newScheduler(h *part.Host) *scheduler {
	return &scheduler{Cluster: cluster.Scheduler(h), model: newModel(), waiting: map[string]bool{}}
}

// Observe brings the model up to date, and names pods that want a node. What may make room has the pods that wait
// looked at again.
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
	case cluster.Namespaces.Is(ev), cluster.PersistentVolumeClaims.Is(ev):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retry(need)
	}
}

func (s *scheduler) retry(need func(string)) {
	for key := range s.waiting {
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
		delete(s.waiting, e.Key())
		delete(s.model.nominated, e.Key())
		if s.model.remove(e.Key()) {
			s.retry(need)
		}
	case node == "":
		s.model.remove(e.Key()) // made anew
		if name, _ := e.Field("spec.schedulerName"); name == corev1.DefaultSchedulerName && !e.Deleting {
			if ev.Prev == nil || !s.waiting[e.Key()] || ev.Prev.Generation != e.Generation {
				need(e.Key())
			}
		} else {
			delete(s.waiting, e.Key())
		}
	default:
		delete(s.waiting, e.Key())
		if had := s.model.pods[e.Key()]; had != nil && had.uid == e.UID && had.node == node &&
			had.generation == e.Generation && sameLabels(had.labels, e.Labels) {
			return
		}
		if pod := cluster.Pods.Decode(s.Cluster, e); pod != nil {
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
	pod := cluster.Pods.Get(s.Cluster, namespace, name)
	if pod == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil ||
		pod.Spec.SchedulerName != corev1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	info := digest(pod)
	s.mu.Lock()
	if had := s.model.pods[key]; had != nil && had.uid == info.uid { // its binding is under way
		s.mu.Unlock()
		return nil
	}
	d := s.decide(info)
	if d.node != "" {
		s.model.add(info, d.node)
		delete(s.waiting, key)
	} else {
		s.waiting[key] = true
		delete(s.model.nominated, key)
		if d.nominated != "" {
			info.node = d.nominated
			s.model.nominated[key] = info
		}
	}
	s.mu.Unlock()
	if d.node == "" {
		return s.refuse(ctx, pod, d)
	}
	if err := s.bind(ctx, pod, d.node); err != nil {
		s.mu.Lock()
		s.model.remove(key)
		s.mu.Unlock()
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // it is gone, or another scheduler was faster
		}
		return err
	}
	s.Report(ctx, cluster.Event{
		About: cluster.Pods.Ref(pod), Type: corev1.EventTypeNormal, Reason: "Scheduled", Action: "Binding",
		Message: "Successfully assigned " + key + " to " + d.node,
	})
	return nil
}

// decide finds a node for a pod. It needs the lock.
func (s *scheduler) decide(p *podInfo) decision {
	if s.model.count() > 0 {
		if why := s.claims(p); why != "" {
			return decision{because: failure{nodes: s.model.count(), first: why}.String()}
		}
	}
	return s.model.decide(p, s.namespaceLabels)
}

// namespaceLabels are those of a namespace, for the selectors of affinity terms.
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
	call.Subresource = "binding"
	act := s.Verbs.Action(call)
	return act.Run(ctx, s.Verbs, call, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{FieldManager: s.Manager})
}

// refuse says of a pod why it has no node, and has its victims go.
func (s *scheduler) refuse(ctx context.Context, pod *corev1.Pod, d decision) error {
	condition := unschedulable(d.because)
	if was := scheduled(pod); was == nil || was.Message != condition.Message ||
		pod.Status.NominatedNodeName != d.nominated && d.nominated != "" {
		_, err := cluster.Pods.UpdateStatus(ctx, s.Cluster, pod, func(p *corev1.Pod) error {
			cluster.SetCondition(p, condition, s.Now())
			if d.nominated != "" {
				p.Status.NominatedNodeName = d.nominated
			}
			return nil
		})
		if err != nil {
			return control.IgnoreNotFound(err)
		}
	}
	s.Report(ctx, cluster.Event{
		About: cluster.Pods.Ref(pod), Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Action: "Scheduling",
		Message: d.because,
	})
	for _, victim := range d.victims {
		if err := s.evict(ctx, victim, pod, d.nominated); err != nil {
			return err
		}
	}
	return nil
}

func (s *scheduler) evict(ctx context.Context, victim *podInfo, by *corev1.Pod, node string) error {
	pod := cluster.Pods.Get(s.Cluster, victim.namespace, victim.name)
	if pod == nil || string(pod.UID) != victim.uid || pod.DeletionTimestamp != nil {
		return nil
	}
	_, err := cluster.Pods.UpdateStatus(ctx, s.Cluster, pod, func(p *corev1.Pod) error {
		cluster.SetCondition(p, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message:            s.Component + ": preempting to accommodate a higher priority pod",
			ObservedGeneration: p.Generation,
		}, s.Now())
		return nil
	})
	if err == nil {
		err = cluster.Pods.Delete(ctx, s.Cluster, pod, metav1.DeleteOptions{})
	}
	if err == nil {
		s.Report(ctx, cluster.Event{
			About: cluster.Pods.Ref(pod), Type: corev1.EventTypeNormal, Reason: "Preempted", Action: "Preempting",
			Message: "Preempted by pod " + string(by.UID) + " on node " + node,
		})
	}
	return control.IgnoreNotFound(err)
}

func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

func unschedulable(because string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: because,
	}
}

// claims returns why a pod cannot have the claims that it names, "" if nothing is against it.
func (s *scheduler) claims(p *podInfo) string {
	for _, name := range p.claims {
		claim := cluster.PersistentVolumeClaims.Get(s.Cluster, p.namespace, name)
		switch {
		case claim == nil:
			return `persistentvolumeclaim "` + name + `" not found`
		case claim.Status.Phase == corev1.ClaimLost:
			return `persistentvolumeclaim "` + name + `" bound to non-existent persistentvolume "` +
				claim.Spec.VolumeName + `"`
		case claim.DeletionTimestamp != nil:
			return `persistentvolumeclaim "` + name + `" is being deleted`
		}
	}
	return ""
}
