package node

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// evictionController is kube's name.
const evictionController = "taint-eviction-controller"

// eviction deletes pods that do not, or no longer, tolerate the NoExecute taints of their node. A key is the key of a
// pod, or the name of a node for all of its pods. Source: pkg/controller/tainteviction of Kubernetes 1.36.
type eviction struct {
	*cluster.Cluster
	need func(string)
	// doomed holds the keys of pods with a running toleration time.
	doomed sync.Map
}

// Requests implements control.Requester.
func (v *eviction) Requests(need func(string)) { v.need = need }

func (v *eviction) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case ev.Type == watchcache.Deleted:
		if _, ok := v.doomed.Load(ev.Entry.Key()); ok && cluster.Pods.Is(ev) {
			need(ev.Entry.Key())
		}
	case cluster.Nodes.Is(ev):
		now, _ := ev.Entry.Field("spec.taints")
		was := ""
		if ev.Prev != nil {
			was, _ = ev.Prev.Field("spec.taints")
		}
		if now != was && (executes(now) || executes(was)) {
			need(ev.Entry.Name)
		}
	case cluster.Pods.Is(ev):
		if _, ok := v.doomed.Load(ev.Entry.Key()); ok || v.threatened(ev.Entry) {
			need(ev.Entry.Key())
		}
	}
}

func executes(taints string) bool {
	return strings.Contains(taints, string(corev1.TaintEffectNoExecute))
}

// threatened reports whether a pod is on a node with NoExecute taints.
func (v *eviction) threatened(pod *watchcache.Entry) bool {
	name, _ := pod.Field("spec.nodeName")
	if name == "" || pod.Deleting {
		return false
	}
	node := v.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", name)
	if node == nil {
		return false
	}
	taints, _ := node.Field("spec.taints")
	return executes(taints)
}

func (v *eviction) Reconcile(ctx context.Context, key string) error {
	namespace, name, isPod := strings.Cut(key, "/")
	if !isPod {
		for _, pod := range v.PodsOn(key) {
			v.need(pod.Namespace + "/" + pod.Name)
		}
		return nil
	}
	pod := cluster.Pods.Get(v.Cluster, namespace, name)
	if pod == nil {
		v.spare(ctx, key)
		return nil
	}
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
		return nil
	}
	n := cluster.Nodes.Get(v.Cluster, "", pod.Spec.NodeName)
	if n == nil {
		return nil
	}
	end, doomed := evictedAt(pod, n)
	if !doomed {
		v.spare(ctx, key)
		return nil
	}
	if left := -v.Since(end); left > 0 {
		v.doomed.Store(key, true)
		return control.Again(left)
	}
	if end.IsZero() { // it does not tolerate them any more
		v.spare(ctx, key)
	}
	v.doomed.Delete(key)
	return v.evict(ctx, pod)
}

// spare forgets that a pod was to be evicted, and reports that.
func (v *eviction) spare(ctx context.Context, key string) {
	if _, was := v.doomed.LoadAndDelete(key); was {
		namespace, name, _ := strings.Cut(key, "/")
		about := corev1.ObjectReference{
			APIVersion: "v1", Kind: cluster.Pods.Kind, Namespace: namespace, Name: name,
		}
		v.Normal(ctx, about, "TaintManagerEviction", "Cancelling deletion of Pod %s", key)
	}
}

// evictedAt returns when a pod is to be evicted for the taints of its node; ends is false if it tolerates them forever,
// or if there are none.
func evictedAt(pod *corev1.Pod, n *corev1.Node) (at time.Time, ends bool) {
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		end, ok := patience(pod, taint)
		if ok && (!ends || end.Before(at)) {
			at, ends = end, true
		}
	}
	return at, ends
}

// patience returns when a pod stops to tolerate a taint, false if never.
func patience(pod *corev1.Pod, taint *corev1.Taint) (time.Time, bool) {
	tolerated, least, bounded := false, int64(0), false
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !cluster.Tolerates(t, taint) {
			continue
		}
		tolerated = true
		if s := t.TolerationSeconds; s != nil && (!bounded || *s < least) {
			least, bounded = max(0, *s), true
		}
	}
	switch {
	case !tolerated || bounded && least == 0:
		return time.Time{}, true
	case !bounded:
		return time.Time{}, false
	}
	since := pod.CreationTimestamp.Time
	if taint.TimeAdded != nil && taint.TimeAdded.After(since) {
		since = taint.TimeAdded.Time
	}
	return since.Add(cluster.Seconds(least)), true
}

func (v *eviction) evict(ctx context.Context, pod *corev1.Pod) error {
	v.Normal(ctx, cluster.Pods.Ref(pod), "TaintManagerEviction", "Marking for deletion Pod %s/%s",
		pod.Namespace, pod.Name)
	_, err := cluster.Pods.UpdateStatus(ctx, v.Cluster, pod, func(p *corev1.Pod) error {
		cluster.SetCondition(p, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
			Message: "Taint manager: deleting due to NoExecute taint", ObservedGeneration: p.Generation,
		}, v.Now())
		return nil
	})
	if err == nil {
		err = cluster.Pods.Delete(ctx, v.Cluster, pod, metav1.DeleteOptions{})
	}
	return control.IgnoreNotFound(err)
}
