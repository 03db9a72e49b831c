package pod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// host is the part of a cluster that a pod's kubelet reads. Its zero value is a cluster that has every object, and a
// node with room for every resize.
type host struct {
	namespace string // the pod's
	// look looks for an object of the pod's namespace and, unless it is "", a key of its data.
	look func(o source, key string) presence
	// fits returns why the node has no room for the pod with the resources of its spec, "" if it has.
	fits func(pod *corev1.Pod) (why string)
}

// source is a ConfigMap or a Secret.
type source struct {
	secret bool
	name   string
}

// presence is how much of an object exists: the object, the key in its data, the key in its binaryData.
type presence struct{ object, data, binary bool }

func configMap(name string) source { return source{name: name} }

func secret(name string) source { return source{secret: true, name: name} }

// missing returns the kubelet's error for an object that does not exist, "" for one that exists.
func (h *host) missing(o source) string {
	if h.look == nil || h.look(o, "").object {
		return ""
	}
	kind := "configmap"
	if o.secret {
		kind = "secret"
	}
	return fmt.Sprintf("%s %q not found", kind, o.name)
}

// key looks for a key of an object.
func (h *host) key(o source, key string) presence {
	if h.look == nil {
		return presence{object: true, data: true}
	}
	return h.look(o, key)
}

// room returns why the node has no room for a resized pod.
func (h *host) room(pod *corev1.Pod) string {
	if h.fits == nil {
		return ""
	}
	return h.fits(pod)
}

// environment returns why the environment of a container cannot be made, "" if it can. Source: makeEnvironmentVariables
// of pkg/kubelet of Kubernetes 1.36.
func (h *host) environment(c *corev1.Container) string {
	for i := range c.EnvFrom {
		switch from := &c.EnvFrom[i]; {
		case from.ConfigMapRef != nil:
			if why := h.missing(configMap(from.ConfigMapRef.Name)); why != "" && !set(from.ConfigMapRef.Optional) {
				return why
			}
		case from.SecretRef != nil:
			if why := h.missing(secret(from.SecretRef.Name)); why != "" && !set(from.SecretRef.Optional) {
				return why
			}
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if c.Env[i].Value != "" || from == nil {
			continue
		}
		why := ""
		switch {
		case from.ConfigMapKeyRef != nil:
			r := from.ConfigMapKeyRef
			why = h.variable(configMap(r.Name), r.Key, set(r.Optional))
		case from.SecretKeyRef != nil:
			r := from.SecretKeyRef
			why = h.variable(secret(r.Name), r.Key, set(r.Optional))
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// variable returns why an environment variable has no value, "" if it has one or needs none.
func (h *host) variable(o source, key string, optional bool) string {
	if why := h.missing(o); why != "" || h.key(o, key).data {
		if optional {
			return ""
		}
		return why
	}
	if optional {
		return ""
	}
	kind := "ConfigMap"
	if o.secret {
		kind = "Secret"
	}
	return fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, h.namespace, o.name)
}

func set(b *bool) bool { return b != nil && *b }

// volume returns why a volume cannot be mounted, "" if it can. Sources: pkg/volume/{configmap,secret,projected} of
// Kubernetes 1.36.
func (h *host) volume(v *corev1.Volume) string {
	switch {
	case v.ConfigMap != nil:
		return h.files(configMap(v.ConfigMap.Name), v.ConfigMap.Items, set(v.ConfigMap.Optional))
	case v.Secret != nil:
		return h.files(secret(v.Secret.SecretName), v.Secret.Items, set(v.Secret.Optional))
	case v.Projected == nil:
		return ""
	}
	var all []string
	for i := range v.Projected.Sources {
		why := ""
		switch s := &v.Projected.Sources[i]; {
		case s.ConfigMap != nil:
			why = h.files(configMap(s.ConfigMap.Name), s.ConfigMap.Items, set(s.ConfigMap.Optional))
		case s.Secret != nil:
			why = h.files(secret(s.Secret.Name), s.Secret.Items, set(s.Secret.Optional))
		}
		if why != "" {
			all = append(all, why)
		}
	}
	if len(all) > 1 {
		return "[" + strings.Join(all, ", ") + "]"
	}
	return strings.Join(all, "")
}

// files returns why the files of a volume cannot be written.
func (h *host) files(o source, items []corev1.KeyToPath, optional bool) string {
	why := h.missing(o)
	if optional || why != "" {
		if optional {
			return ""
		}
		return why
	}
	for i := range items {
		if p := h.key(o, items[i].Key); p.data || p.binary {
			continue
		}
		if o.secret {
			return "references non-existent secret key: " + items[i].Key
		}
		return "configmap references non-existent config key: " + items[i].Key
	}
	return ""
}

// The times between the attempts of a kubelet to mount a volume: the first, doubled after each failure, up to the last.
const (
	firstMount = 500 * time.Millisecond
	lastMount  = 2*time.Minute + 2*time.Second
)

// mount mounts the volumes that containers use, and reports whether it could. Kubelets wait for all of them before they
// make the pod's sandbox.
func (l *life) mount() bool {
	failed := false
	report := !l.now.Before(l.memory.retry)
	for i := range l.pod.Spec.Volumes {
		v := &l.pod.Spec.Volumes[i]
		if v.ConfigMap == nil && v.Secret == nil && v.Projected == nil || !l.mounted(v.Name) {
			continue
		}
		why := l.host.volume(v)
		if why == "" {
			continue
		}
		failed = true
		if report {
			l.report(corev1.EventTypeWarning, "FailedMount", "MountVolume.SetUp failed for volume %q : %s", v.Name, why)
		}
	}
	m := l.memory
	if failed {
		if report {
			m.retry = l.now.Add(min(firstMount<<min(m.failures, 8), lastMount))
			m.failures++
		}
		l.again(m.retry.Sub(l.now))
		return false
	}
	m.failures, m.retry = 0, time.Time{}
	return true
}

// mounted reports whether a container mounts a volume.
func (us *units) mounted(volume string) bool {
	for i := range us.all {
		for j := range us.all[i].spec.VolumeMounts {
			if us.all[i].spec.VolumeMounts[j].Name == volume {
				return true
			}
		}
	}
	return false
}

// pullSecrets reports missing Secrets for image pulls, after a failed pull. They do not hold up the pod.
func (l *life) pullSecrets() {
	var names []string
	for _, r := range l.pod.Spec.ImagePullSecrets {
		if r.Name != "" && l.host.missing(secret(r.Name)) != "" {
			names = append(names, r.Name)
		}
	}
	if len(names) > 0 {
		l.report(corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
			strings.Join(names, ", "))
	}
}
