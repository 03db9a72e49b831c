package cluster

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// brief is a pod with what a set of many looks at in each of its pods. It is what an entry keeps, unless the whole is
// wanted more than once: a third of it, and decoded in half the time.
type brief struct{ corev1.Pod }

// briefForm is what is read for a brief.
type briefForm struct {
	Metadata struct {
		Annotations       map[string]string       `json:"annotations"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase                 corev1.PodPhase       `json:"phase"`
		Conditions            []corev1.PodCondition `json:"conditions"`
		ContainerStatuses     []restarts            `json:"containerStatuses"`
		InitContainerStatuses []restarts            `json:"initContainerStatuses"`
	} `json:"status"`
}

type restarts struct {
	RestartCount int32 `json:"restartCount"`
}

func (r restarts) any() bool { return r.RestartCount > 0 }

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
		if b := x.brief(e); b != nil {
			e.Keep(b)
			out = append(out, &b.Pod)
		} else if pod := Pods.decode(x, e); pod != nil {
			out = append(out, pod)
		}
	}
	return out
}

// brief returns an entry's pod in brief, nil if that does not say enough, or it cannot be read.
func (x *Index) brief(e *watchcache.Entry) *brief {
	var read briefForm
	if e.APIVersion != Pods.Version || json.Unmarshal(e.Unmanaged(), &read) != nil {
		return nil
	}
	if slices.ContainsFunc(read.Status.ContainerStatuses, restarts.any) ||
		slices.ContainsFunc(read.Status.InitContainerStatuses, restarts.any) {
		return nil
	}
	b := &brief{}
	b.Namespace, b.Name, b.UID, b.Labels = e.Namespace, e.Name, types.UID(e.UID), e.Labels
	b.CreationTimestamp, b.DeletionTimestamp = read.Metadata.CreationTimestamp, read.Metadata.DeletionTimestamp
	b.OwnerReferences = x.owners.share(read.Metadata.OwnerReferences)
	if cost, has := read.Metadata.Annotations[corev1.PodDeletionCost]; has {
		b.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	}
	b.Spec.NodeName, b.Status.Phase = read.Spec.NodeName, read.Status.Phase
	for _, c := range read.Status.Conditions {
		if c.Type == corev1.PodReady {
			b.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return b
}

// sharedOwners has pods that follow each other share their owners, which mostly are the same.
type sharedOwners struct {
	last atomic.Pointer[[]metav1.OwnerReference]
}

func (s *sharedOwners) share(owners []metav1.OwnerReference) []metav1.OwnerReference {
	if last := s.last.Load(); last != nil && slices.EqualFunc(*last, owners, sameOwner) {
		return *last
	}
	s.last.Store(&owners)
	return owners
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		same(a.Controller, b.Controller) && same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func same(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
