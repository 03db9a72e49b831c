package cluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// brief is a pod with what a set of many looks at in each of its pods. It is what an entry keeps, unless the whole is
// wanted more than once: a third of it, and decoded in half the time.
type brief struct{ corev1.Pod }

// condition and restarts are what is read for a brief of a pod's conditions and containers.
type condition struct {
	Type, Status       string
	LastTransitionTime metav1.Time
}

type restarts struct{ RestartCount int32 }

// ControlledBriefly is Pods.Controlled for who looks at no more of a pod than its name, uid, labels, times and owners,
// what it costs to delete, its node, its phase, whether it is ready, and how often its containers have restarted.
func (x *Index) ControlledBriefly(namespace, uid string, orphans bool) (out []*corev1.Pod) {
	for _, e := range x.entries(Pods.Prefix, namespace, uid, orphans) {
		if e = e.LastReadable(); e == nil {
			continue
		}
		switch kept := e.Kept().(type) {
		case *corev1.Pod:
			out = append(out, kept)
			continue
		case *brief:
			out = append(out, &kept.Pod)
			continue
		}
		if b := newBrief(e); b != nil {
			e.Keep(b)
			out = append(out, &b.Pod)
		} else if pod := Pods.decode(x, e); pod != nil {
			out = append(out, pod)
		}
	}
	return out
}

// newBrief returns an entry's pod in brief, nil if that does not say enough, or it cannot be read.
func newBrief(e *watchcache.Entry) *brief {
	if e.APIVersion != Pods.Version {
		return nil
	}
	doc := e.Peek()
	meta, status := watchcache.PartOf(doc, "metadata"), watchcache.PartOf(doc, "status")
	ok := true
	read := func(raw []byte, into any) {
		if raw != nil {
			ok = ok && json.Unmarshal(raw, into) == nil
		}
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
		var all []restarts
		read(watchcache.PartOf(status, list), &all)
		if slices.ContainsFunc(all, func(r restarts) bool { return r.RestartCount > 0 }) {
			return nil
		}
	}
	b := &brief{}
	b.Namespace, b.Name, b.UID, b.Labels = e.Namespace, e.Name, types.UID(e.UID), e.Labels
	read(watchcache.PartOf(meta, "creationTimestamp"), &b.CreationTimestamp)
	read(watchcache.PartOf(meta, "deletionTimestamp"), &b.DeletionTimestamp)
	owners := ownersOf(watchcache.PartOf(meta, "ownerReferences"))
	b.OwnerReferences = owners.all
	if raw := watchcache.PartOf(meta, "annotations", corev1.PodDeletionCost); raw != nil {
		var cost string
		read(raw, &cost)
		b.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	}
	read(watchcache.PartOf(doc, "spec", "nodeName"), &b.Spec.NodeName)
	read(watchcache.PartOf(status, "phase"), &b.Status.Phase)
	var conditions []condition
	read(watchcache.PartOf(status, "conditions"), &conditions)
	for _, c := range conditions {
		if c.Type == string(corev1.PodReady) {
			b.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionStatus(c.Status),
				LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	if !ok || owners.err != nil {
		return nil
	}
	return b
}
