package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Course is the simulated life of one pod outside of a server. Tests compare it with a kubelet's own code. Its zero
// value is ready for a new pod.
type Course struct {
	memory memory
	// ConfigMaps and Secrets are the objects of the pod's namespace, by name. If both are nil, every object exists.
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	// Fits returns why the node has no room for a resized pod; nil is a node with room for every resize.
	Fits func(*corev1.Pod) string
}

// Advance gives a pod on a healthy node the status of a time. Once done is set, no status follows. Otherwise the next
// one is due after wait; 0 means that it follows a change of the pod.
func (c *Course) Advance(pod *corev1.Pod, now time.Time) (wait time.Duration, done bool) {
	h := host{namespace: pod.Namespace, fits: c.Fits}
	if c.ConfigMaps != nil || c.Secrets != nil {
		h.look = c.look
	}
	s := next(pod, now, h, &c.memory)
	pod.Status = *s.status
	return s.wait, s.gone || over(pod)
}

func (c *Course) look(o source, key string) (found presence) {
	if o.secret {
		s := c.Secrets[o.name]
		if found.object = s != nil; found.object {
			_, found.data = s.Data[key]
		}
		return found
	}
	m := c.ConfigMaps[o.name]
	if found.object = m != nil; found.object {
		_, found.data = m.Data[key]
		_, found.binary = m.BinaryData[key]
	}
	return found
}
