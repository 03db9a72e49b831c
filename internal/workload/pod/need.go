package pod

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// want is something that pods wait for: an object of a namespace, or room on a node.
type want struct {
	object          source
	namespace, node string
}

// needs are the pods that wait, by key. Its zero value is ready.
type needs struct {
	mu   sync.Mutex
	pods map[want]map[string]bool // guarded by mu
	of   map[string]map[want]bool // guarded by mu: the same by pod
}

// set notes that a pod waits for w, or no longer does.
func (n *needs) set(pod string, w want, waits bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !waits {
		if n.of[pod][w] {
			n.remove(pod, w)
		}
		return
	}
	if n.pods == nil {
		n.pods, n.of = map[want]map[string]bool{}, map[string]map[want]bool{}
	}
	if n.pods[w] == nil {
		n.pods[w] = map[string]bool{}
	}
	if n.of[pod] == nil {
		n.of[pod] = map[want]bool{}
	}
	n.pods[w][pod], n.of[pod][w] = true, true
}

// remove needs the lock.
func (n *needs) remove(pod string, w want) {
	if delete(n.pods[w], pod); len(n.pods[w]) == 0 {
		delete(n.pods, w)
	}
	if delete(n.of[pod], w); len(n.of[pod]) == 0 {
		delete(n.of, pod)
	}
}

// forget is called when a pod is gone.
func (n *needs) forget(pod string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.of[pod] {
		n.remove(pod, w)
	}
}

// each calls f with each pod that waits for w.
func (n *needs) each(w want, f func(pod string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pod := range n.pods[w] {
		f(pod)
	}
}

// host returns the part of the cluster that a pod's kubelet reads. A pod that has missed an object is looked at after
// each change of the object.
func (p *pods) host(pod *corev1.Pod) host {
	return host{
		namespace: pod.Namespace,
		look: func(o source, key string) presence {
			found := p.find(pod.Namespace, o, key)
			if missing := !found.object || key != "" && !found.data && !found.binary; missing {
				w := want{object: o, namespace: pod.Namespace}
				p.needs.set(pod.Namespace+"/"+pod.Name, w, true)
				found = p.find(pod.Namespace, o, key) // it may have been created before the pod was noted
			}
			return found
		},
		fits: p.admission.fits,
	}
}

// find looks for an object and a key of it.
func (p *pods) find(namespace string, o source, key string) (found presence) {
	prefix := cluster.ConfigMaps.Prefix
	if o.secret {
		prefix = cluster.Secrets.Prefix
	}
	e := p.View.Collection(prefix).Snapshot().Get(namespace, o.name)
	if found.object = e != nil; !found.object || key == "" {
		return found
	}
	if o.secret {
		if s := cluster.Secrets.ReadEntry(p.index, e); s != nil {
			_, found.data = s.Data[key]
		}
	} else if c := cluster.ConfigMaps.ReadEntry(p.index, e); c != nil {
		_, found.data = c.Data[key]
		_, found.binary = c.BinaryData[key]
	}
	return found
}
