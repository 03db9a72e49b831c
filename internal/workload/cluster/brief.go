package cluster

import (
	"encoding/json"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// brief holds the fields of a pod that controllers with many pods read, beyond the fields of the entry. An entry caches
// the brief unless the whole pod is read more than once: a brief takes a tenth of the memory, and half the time to
// decode.
type brief struct {
	owners  []metav1.OwnerReference
	created metav1.Time
	deleted *metav1.Time
	cost    string // pod deletion cost; "" if not set
	node    string
	phase   corev1.PodPhase
	ready   corev1.ConditionStatus // "" if the pod has no Ready condition
	since   metav1.Time            // when ready last changed
}

// condition and restarts are the parts of a pod's conditions and container statuses that a brief needs.
type condition struct {
	Type, Status       string
	LastTransitionTime metav1.Time
}

type restarts struct{ RestartCount int32 }

// PodCount counts the pods of a controller: Active pods have not ended and are not being deleted, Ready ones are active
// and ready, and Terminating ones are being deleted.
type PodCount struct{ Active, Ready, Terminating int32 }

// Count counts the pods of a controller, which are the pods that selects matches. ok is false in the cases that need
// adoption or release: a matching pod without a controller, or a pod of the controller that selects or template does
// not match.
func (x *Index) Count(namespace, uid string, selects, template labels.Selector) (n PodCount, ok bool) {
	for _, e := range x.entries(Pods.Prefix, namespace, "", false) {
		if selects.Matches(labels.Set(e.Labels)) {
			return n, false
		}
	}
	var known uintptr // the last labels that selects and template matched; nearly all pods of a controller share theirs
	for _, e := range x.entries(Pods.Prefix, namespace, uid, false) {
		if e = e.LastReadable(); e == nil {
			continue
		}
		b := briefOf(e)
		if b == nil {
			pod := Pods.decode(x, e)
			if pod == nil {
				continue
			}
			b = &brief{deleted: pod.DeletionTimestamp, phase: pod.Status.Phase}
			if c := Condition(&pod.Status, corev1.PodReady); c != nil {
				b.ready = c.Status
			}
		}
		switch {
		case b.phase == corev1.PodSucceeded || b.phase == corev1.PodFailed:
			continue
		case known != 0 && reflect.ValueOf(e.Labels).Pointer() == known:
		case !selects.Matches(labels.Set(e.Labels)) || !template.Matches(labels.Set(e.Labels)):
			return n, false
		}
		known = reflect.ValueOf(e.Labels).Pointer()
		switch {
		case b.deleted != nil:
			n.Terminating++
			continue
		case b.ready == corev1.ConditionTrue:
			n.Ready++
		}
		n.Active++
	}
	return n, true
}

// ControlledBriefly is Pods.Controlled for callers that read only a pod's name, uid, labels, times, owners, deletion
// cost, node, phase, readiness and restart counts.
func (x *Index) ControlledBriefly(namespace, uid string, orphans bool) (out []*corev1.Pod) {
	for _, e := range x.entries(Pods.Prefix, namespace, uid, orphans) {
		if e = e.LastReadable(); e == nil {
			continue
		}
		if b := briefOf(e); b != nil {
			out = append(out, b.pod(e))
		} else if pod := Pods.decode(x, e); pod != nil {
			out = append(out, pod)
		}
	}
	return out
}

// briefOf returns the brief of an entry's pod and caches it on the entry. It returns nil if a brief does not suffice,
// or if the entry already caches the whole pod.
func briefOf(e *watchcache.Entry) *brief {
	switch decoded := e.Decoded().(type) {
	case *corev1.Pod:
		return nil
	case *brief:
		return decoded
	}
	b := newBrief(e)
	if b != nil {
		e.CacheDecoded(b)
	}
	return b
}

// pod returns the pod of an entry, with only the fields of the entry and of its brief.
func (b *brief) pod(e *watchcache.Entry) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.Labels = e.Namespace, e.Name, types.UID(e.UID), e.Labels
	p.OwnerReferences, p.CreationTimestamp, p.DeletionTimestamp = b.owners, b.created, b.deleted
	if b.cost != "" {
		p.Annotations = map[string]string{corev1.PodDeletionCost: b.cost}
	}
	p.Spec.NodeName, p.Status.Phase = b.node, b.phase
	if b.ready != "" {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: b.ready, LastTransitionTime: b.since,
		}}
	}
	return p
}

// newBrief returns the brief of an entry's pod, or nil if a brief does not suffice or the pod is unreadable.
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
	read(watchcache.PartOf(meta, "creationTimestamp"), &b.created)
	read(watchcache.PartOf(meta, "deletionTimestamp"), &b.deleted)
	owners := ownersOf(watchcache.PartOf(meta, "ownerReferences"))
	b.owners = owners.all
	read(watchcache.PartOf(meta, "annotations", corev1.PodDeletionCost), &b.cost)
	b.node, _ = e.Field("spec.nodeName")
	read(watchcache.PartOf(status, "phase"), &b.phase)
	var conditions []condition
	read(watchcache.PartOf(status, "conditions"), &conditions)
	for _, c := range conditions {
		if c.Type == string(corev1.PodReady) {
			b.ready, b.since = corev1.ConditionStatus(c.Status), c.LastTransitionTime
		}
	}
	if !ok || owners.err != nil {
		return nil
	}
	return b
}
