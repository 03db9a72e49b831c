// Package pod simulates how kubelets run the pods of simulated nodes: containers start, become ready, end and restart,
// and stop when the pod is deleted. Annotations of the pod change this course.
//
// The next status of a pod is a function of the pod, the time, the objects that it refers to, and a kubelet's memory of
// the pod (life.go). It follows a kubelet's code: sync.go its decisions, phase.go and condition.go its status. The loop
// writes the status as the kubelet of the pod's node. If there are Stages for pods, package play runs them instead.
package pod

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// loop is the name of the loop.
const loop = "simulated-pods"

// workers is how many pods are looked at at a time.
const workers = 4

// Part declares the loop that runs pods.
func Part(shared *cluster.Shared, stages cluster.Stages, refuses Refuses) part.Part {
	return part.Part{Name: "simulated pods", Loops: []part.Loop{
		{Name: loop, Workers: workers, Pooled: true, New: func(h *part.Host) control.Reconciler {
			c := cluster.Kubelets(h)
			return cluster.Timed(h, &pods{
				Cluster: c, index: shared.Of(h), addresses: shared.Addresses(), stages: stages,
				admission: admission{
					Cluster: c, refuses: refuses, taken: map[types.UID]bool{}, granted: map[types.UID]*corev1.Pod{},
				},
			})
		}},
	}}
}

// pods runs the pods of all simulated nodes. A key is the key of a pod, or the name of a node for all of its pods.
type pods struct {
	*cluster.Cluster
	index     *cluster.Index
	addresses *cluster.Addresses
	stages    cluster.Stages
	admission admission
	needs     needs
	memories  memories
	need      func(string)
}

// Requests implements control.Requester.
func (p *pods) Requests(need func(string)) {
	p.need = need
	p.stages.OnChange(p.lookAtAll)
}

// lookAtAll requests all simulated nodes, after a change of the Stages.
func (p *pods) lookAtAll() {
	p.View.Collection(cluster.Nodes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if cluster.IsSimulated(e) {
			p.need(e.Name)
		}
		return true
	})
}

func (p *pods) Observe(ev *watchcache.Event, need func(string)) {
	e := ev.Entry
	switch {
	case cluster.Pods.Is(ev):
		ip, _ := e.Field("status.podIP")
		if ev.Type == watchcache.Deleted {
			p.addresses.Free(e.UID)
			p.admission.forget(types.UID(e.UID))
			p.memories.forget(types.UID(e.UID))
			p.needs.forget(e.Key())
			p.freed(e, need)
			return
		}
		p.addresses.Take(e.UID, ip)
		if name, _ := e.Field("spec.nodeName"); name != "" {
			need(e.Key())
			p.freed(e, need)
		}
	case ev.Type != watchcache.Deleted && (cluster.ConfigMaps.Is(ev) || cluster.Secrets.Is(ev)):
		o := source{secret: cluster.Secrets.Is(ev), name: e.Name}
		p.needs.each(want{object: o, namespace: e.Namespace}, need)
	case cluster.Nodes.Is(ev) && ev.Type != watchcache.Deleted:
		if cluster.IsSimulated(e) && !cluster.IsDown(e) && (ev.Prev == nil || !cluster.IsSimulated(ev.Prev) ||
			cluster.IsDown(ev.Prev) || recovered(ev)) {
			need(e.Name)
		}
	}
}

// freed requests the pods whose resize waits for room on a pod's node, after a change of the pod.
func (p *pods) freed(e *watchcache.Entry, need func(string)) {
	if node, _ := e.Field("spec.nodeName"); node != "" {
		key := e.Key()
		p.needs.each(want{node: node}, func(waiting string) {
			if waiting != key {
				need(waiting)
			}
		})
	}
}

// recovered reports whether a node has been given taints, or lost some.
func recovered(ev *watchcache.Event) bool {
	now, _ := ev.Entry.Field("spec.taints")
	was, _ := ev.Prev.Field("spec.taints")
	return now != was
}

func (p *pods) Reconcile(ctx context.Context, key string) error {
	namespace, name, isPod := strings.Cut(key, "/")
	if !isPod {
		for _, pod := range p.PodsOn(key) {
			p.need(pod.Namespace + "/" + pod.Name)
		}
		return nil
	}
	if p.stages.Replace(cluster.PodKind) {
		return nil
	}
	pod := cluster.Pods.ReadOnce(p.index, namespace, name)
	if pod == nil || pod.Spec.NodeName == "" {
		return nil
	}
	n := p.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", pod.Spec.NodeName)
	if !cluster.IsSimulated(n) || cluster.IsDown(n) {
		return nil
	}
	err := p.work(ctx, p.Kubelet(pod.Spec.NodeName), pod)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone or was deleted meanwhile, and an event follows
	}
	return err
}

// work advances a pod by one step.
func (p *pods) work(ctx context.Context, kubelet *cluster.Cluster, pod *corev1.Pod) error {
	var s step
	reason, message := p.admission.refused(pod)
	if reason != "" {
		s = refuse(pod, p.Now(), reason, message)
	} else {
		m := p.memories.of(pod.UID)
		s = next(pod, p.Now(), p.host(pod), m)
		p.memories.keep(pod.UID, m)
		p.needs.set(pod.Namespace+"/"+pod.Name, want{node: pod.Spec.NodeName}, s.deferred)
	}
	if s.changed {
		if s.status.PodIP == "" && reason == "" {
			p.address(pod, s.status)
		}
		to := cluster.Target{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Subresource: "status"}
		if err := cluster.Pods.Edit(ctx, kubelet, to, func(now object.Object) error {
			if pod.DeletionTimestamp == nil && object.String(now, "metadata", "deletionTimestamp") != "" {
				return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errDeleted)
			}
			return s.write(now)
		}); err != nil {
			return err
		}
	}
	for _, ev := range s.events {
		ev.About, ev.Host = cluster.Pods.Ref(pod), pod.Spec.NodeName
		if ev.container != "" {
			ev.About.FieldPath = ev.container
		}
		kubelet.Report(ctx, ev.Event)
	}
	if s.gone {
		none := int64(0)
		return cluster.Pods.Delete(ctx, kubelet, pod, metav1.DeleteOptions{
			GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	}
	if s.wait > 0 {
		return control.Again(s.wait)
	}
	return nil
}

// write writes the status of a step into the current pod.
func (s *step) write(pod object.Object) error {
	var now corev1.PodStatus
	into := runtime.DefaultUnstructuredConverter
	if err := into.FromUnstructured(object.Child(pod, "status"), &now); err != nil {
		return err
	}
	s.status.Conditions = merge(now.Conditions, s.status.Conditions)
	status, err := into.ToUnstructured(s.status)
	pod["status"] = status
	return err
}

// merge returns the conditions of a step, with the current values of conditions that kubelets do not own.
func merge(now, step []corev1.PodCondition) []corev1.PodCondition {
	out := make([]corev1.PodCondition, 0, len(now)+len(step))
	for _, c := range now {
		if !own(c.Type) {
			out = append(out, c)
		}
	}
	for _, c := range step {
		if own(c.Type) {
			out = append(out, c)
		}
	}
	return out
}

// address assigns a pod its address: its node's with hostNetwork, or one of its own once it has a sandbox.
func (p *pods) address(pod *corev1.Pod, status *corev1.PodStatus) {
	host := cluster.NodeAddress(pod.Spec.NodeName).String()
	ip := host
	if c := conditionOf(status, corev1.PodReadyToStartContainers); !pod.Spec.HostNetwork && !isTerminal(status.Phase) &&
		c.Status != corev1.ConditionTrue {
		status.HostIP, status.HostIPs = host, []corev1.HostIP{{IP: host}}
		return
	}
	if !pod.Spec.HostNetwork {
		ip = p.addresses.Next(string(pod.UID))
	}
	status.HostIP, status.HostIPs = host, []corev1.HostIP{{IP: host}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
}
