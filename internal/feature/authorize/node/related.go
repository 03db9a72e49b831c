package node

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Where the objects are in the view.
const ()

const nodeField = ".spec.nodeName"

// isNeeded reports whether the node needs the object that q names.
func (q kubeletRequest) isNeeded() bool {
	switch q.Resource {
	case "pods":
		return q.isOfNode(ref.Pods.Prefix)
	case "volumeattachments":
		return q.Namespace == "" && q.isOfNode(ref.VolumeAttachments.Prefix)
	case "resourceslices":
		return q.Namespace == "" && q.isOfNode(ref.ResourceSlices.Prefix)
	case "podcertificaterequests":
		return q.isOfNode(ref.PodCertificateRequests.Prefix)
	case "persistentvolumes":
		volume := q.view.Collection(ref.PersistentVolumes.Prefix).Snapshot().Get("", q.Name)
		if volume == nil || q.Namespace != "" { // an access review can ask about a volume in a namespace
			return false
		}
		v := volumeNeeds(volume)
		return v.ClaimName != "" && q.podNeeds(v.ClaimNamespace, need{"persistentvolumeclaims", v.ClaimName})
	case "secrets":
		return q.podNeeds(q.Namespace, need{q.Resource, q.Name}) || q.volumeNeeds()
	}
	return q.podNeeds(q.Namespace, need{q.Resource, q.Name})
}

// isOfNode reports whether the named object has spec.nodeName of the node.
func (q kubeletRequest) isOfNode(prefix string) bool {
	e := q.view.Collection(prefix).Snapshot().Get(q.Namespace, q.Name)
	if e == nil {
		return false
	}
	node, _ := e.Field(nodeField)
	return node == q.node
}

// byNode finds pods by their node.
type byNode struct{}

// pods calls f for the pods of the node in a namespace, "" for all, until f returns false.
func (q kubeletRequest) pods(namespace string, f func(*watchcache.Entry) bool) {
	nodeOf := func(e *watchcache.Entry) string { v, _ := e.Field(nodeField); return v }
	s := q.view.Collection(ref.Pods.Prefix).SnapshotBy(watchcache.Index{Name: byNode{}, Value: nodeOf})
	ofNode := func(e *watchcache.Entry) bool { return nodeOf(e) != q.node || f(e) }
	if !s.Find(byNode{}, q.node, namespace, "", ofNode) {
		s.Scan(namespace, "", ofNode)
	}
}

// podNeeds reports whether a pod of the node needs an object of its namespace.
func (q kubeletRequest) podNeeds(namespace string, wanted need) (found bool) {
	q.pods(namespace, func(pod *watchcache.Entry) bool {
		if pod.Namespace != namespace {
			return true
		}
		for _, n := range podNeeds(pod) {
			found = found || n == wanted
		}
		return !found
	})
	return found
}

// byClaim finds volumes by the claim that they are for.
type byClaim struct{}

// volumeNeeds reports whether the secret is needed by a volume with a claim that a pod of the node uses.
func (q kubeletRequest) volumeNeeds() (found bool) {
	claimOf := func(e *watchcache.Entry) string {
		namespace, _ := e.Field(".spec.claimRef.namespace")
		name, claimed := e.Field(".spec.claimRef.name")
		if !claimed {
			return ""
		}
		return namespace + "/" + name
	}
	index := watchcache.Index{Name: byClaim{}, Value: claimOf}
	volumes := q.view.Collection(ref.PersistentVolumes.Prefix).SnapshotBy(index)
	q.pods("", func(pod *watchcache.Entry) bool {
		for _, n := range podNeeds(pod) {
			if n.Resource != "persistentvolumeclaims" {
				continue
			}
			claim := pod.Namespace + "/" + n.Name
			ofClaim := func(e *watchcache.Entry) bool {
				if claimOf(e) == claim {
					for _, secret := range volumeNeeds(e).Secrets {
						found = found || secret == [2]string{q.Namespace, q.Name}
					}
				}
				return !found
			}
			if !volumes.Find(byClaim{}, claim, "", "", ofClaim) {
				volumes.Scan("", "", ofClaim)
			}
		}
		return !found
	})
	return found
}

// need is an object of a pod's namespace that the pod needs.
type need struct{ Resource, Name string }

// needsKey is the key of the cached needs of an entry's object, as JSON.
type needsKey struct{}

// podNeeds returns the needs of a pod. An unreadable pod needs nothing.
func podNeeds(pod *watchcache.Entry) []need {
	return cached(pod, func(p *corev1.Pod) []need {
		if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			return nil // a mirror pod: a kubelet must not grant itself access with it
		}
		return needsOf(p)
	})
}

// volume is the claim of a persistent volume, and the secrets (namespace and name) that a node needs to mount it.
type volume struct {
	ClaimNamespace, ClaimName string
	Secrets                   [][2]string
}

func volumeNeeds(e *watchcache.Entry) volume {
	return cached(e, func(v *corev1.PersistentVolume) (out volume) {
		if ref := v.Spec.ClaimRef; ref != nil {
			out = volume{ref.Namespace, ref.Name, volumeSecrets(&v.Spec.PersistentVolumeSource, ref.Namespace)}
		}
		return out
	})
}

// cached returns the result of find on an entry's object, and caches it on the entry.
func cached[Object, Found any](e *watchcache.Entry, find func(*Object) Found) (out Found) {
	data, err := e.Encoded(needsKey{}, func() ([]byte, error) {
		obj := new(Object)
		if err := json.Unmarshal(e.JSON(), obj); err != nil {
			return nil, err
		}
		return json.Marshal(find(obj))
	})
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return *new(Found)
	}
	return out
}
