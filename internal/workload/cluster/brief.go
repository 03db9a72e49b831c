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

// brief is what a set of many looks at in each of its pods, beside what the entry says. It is what an entry keeps,
// unless the whole is wanted more than once: a tenth of it, and decoded in half the time.
type brief struct {
	owners  []metav1.OwnerReference
	created metav1.Time
	deleted *metav1.Time
	cost    string // to delete it; "" if it does not say
	node    string
	phase   corev1.PodPhase
	ready   corev1.ConditionStatus // "" if it does not say
	since   metav1.Time            // of ready
}

// condition and restarts are what is read for a brief of a pod's conditions and containers.
type condition struct {
	Type, Status       string
	LastTransitionTime metav1.Time
}

type restarts struct{ RestartCount int32 }

// PodCount is how many pods of a controller there are that have not ended: those that run or will, those of them that
// are ready, and those that are being deleted.
type PodCount struct{ Active, Ready, Terminating int32 }

// Count counts the pods of a controller, which are those that selects matches. ok is false if it is not so simple: if
// there is one without a controller that it matches, or one that it does not match, or that template does not.
func (x *Index) Count(namespace, uid string, selects, template labels.Selector) (n PodCount, ok bool) {
	for _, e := range x.entries(Pods.Prefix, namespace, "", false) {
		if selects.Matches(labels.Set(e.Labels)) {
			return n, false
		}
	}
	var known uintptr // labels that selects and template match; nearly all pods of a controller share theirs
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

// ControlledBriefly is Pods.Controlled for who looks at no more of a pod than its name, uid, labels, times and owners,
// what it costs to delete, its node, its phase, whether it is ready, and how often its containers have restarted.
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

// briefOf returns an entry's pod in brief, which the entry keeps; nil if that does not say enough, or the entry keeps
// the whole.
func briefOf(e *watchcache.Entry) *brief {
	switch kept := e.Kept().(type) {
	case *corev1.Pod:
		return nil
	case *brief:
		return kept
	}
	b := newBrief(e)
	if b != nil {
		e.Keep(b)
	}
	return b
}

// pod returns the pod of an entry, of which the brief is, without what is not in either.
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
