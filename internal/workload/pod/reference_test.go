package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReferences starts pods that refer to ConfigMaps and Secrets. The cluster has "there" of both kinds with the key
// "k". Each row has the state of the container, its message, and the events.
func TestReferences(t *testing.T) {
	t.Parallel()
	yes := true
	in := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	key := func(name, key string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: in(name), Key: key, Optional: optional,
		}}}
	}
	volume := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}
	}
	failed := `FailedMount: MountVolume.SetUp failed for volume "v" : `
	for name, c := range map[string]struct {
		change func(p *corev1.Pod)
		want   string // "running", or the reason and message
		events string // the warnings
	}{
		"envFrom": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: in("gone")}}}
		}, `CreateContainerConfigError: configmap "gone" not found`, `Failed: Error: configmap "gone" not found`},
		"optional envFrom": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: in("gone"), Optional: &yes}}}
		}, "running", ""},
		"env": {func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{key("there", "k", nil)} },
			"running", ""},
		"env without the object": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{key("gone", "k", nil)}
		}, `CreateContainerConfigError: secret "gone" not found`, `Failed: Error: secret "gone" not found`},
		"env without the key": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{key("there", "x", nil)}
		}, `CreateContainerConfigError: couldn't find key x in Secret default/there`,
			`Failed: Error: couldn't find key x in Secret default/there`},
		"optional env without the key": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{key("there", "x", &yes)}
		}, "running", ""},
		"secret": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}),
			"ContainerCreating: ", failed + `secret "gone" not found`},
		"optional secret": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "gone", Optional: &yes}}), "running", ""},
		"configMap without the key": {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: in("there"), Items: []corev1.KeyToPath{{Key: "x", Path: "x"}}}}),
			"ContainerCreating: ", failed + "configmap references non-existent config key: x"},
		"projected": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: in("gone")}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: in("lost")}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: in("lost"), Optional: &yes}},
			}}}), "ContainerCreating: ", failed + `[secret "gone" not found, configmap "lost" not found]`},
		"a volume that no container mounts": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}}}
		}, "running", ""},
		"image pull secret": {func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{in("gone")}
		}, "running", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := plainPod()
			c.change(pod)
			there := map[string]bool{"there": true}
			h := host{namespace: "default", look: func(o source, key string) presence {
				return presence{object: there[o.name], data: there[o.name] && key == "k"}
			}}
			m := &memory{}
			s := next(pod, noon, h, m)
			if got := stateOf(&s.status.ContainerStatuses[0]); got != c.want {
				t.Errorf("state %q, want %q", got, c.want)
			}
			if got := warnings(s); got != c.events {
				t.Errorf("events %q, want %q", got, c.events)
			}
			if c.want == "running" {
				return
			}
			if s.wait <= 0 || s.status.Phase != corev1.PodPending {
				t.Errorf("a pod that waits: %s, %s", s.wait, s.status.Phase)
			}
			pod.Status = *s.status
			s = next(pod, noon.Add(s.wait), host{}, m) // everything exists
			if got := stateOf(&s.status.ContainerStatuses[0]); got != "running" {
				t.Errorf("with the object: %s", got)
			}
		})
	}
}

// TestPullSecrets checks that a failed pull reports missing Secrets, and a successful pull and a back-off do not.
func TestPullSecrets(t *testing.T) {
	t.Parallel()
	pod := plainPod()
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "gone"}}
	h := host{look: func(source, string) presence { return presence{} }}
	if got := warnings(next(pod.DeepCopy(), noon, h, &memory{})); got != "" {
		t.Errorf("events of a pull: %q", got)
	}
	annotate(pod, pullFailure, "true")
	m := &memory{}
	s := next(pod, noon, h, m)
	if got, want := warnings(s), "; FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (gone); "+
		"attempting to pull the image may not succeed."; !strings.HasSuffix(got, want) {
		t.Errorf("events of a failed pull: %q without %q", got, want)
	}
	pod.Status = *s.status
	if got := warnings(next(pod, noon.Add(s.wait), h, m)); got != "" {
		t.Errorf("events of a back-off: %q", got)
	}
}

// TestMountRetries checks the times between the attempts to mount a volume.
func TestMountRetries(t *testing.T) {
	t.Parallel()
	pod := plainPod()
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	h := host{look: func(source, string) presence { return presence{} }}
	now, m := noon, &memory{}
	var waits []string
	for range 11 {
		s := next(pod, now, h, m)
		if early := next(pod, now, h, m); len(early.events) > 0 || len(s.events) != 1 {
			t.Errorf("%d events, %d before the next attempt", len(s.events), len(early.events))
		}
		pod.Status, now = *s.status, now.Add(s.wait)
		waits = append(waits, s.wait.String())
	}
	if got, want := strings.Join(waits, " "), "500ms 1s 2s 4s 8s 16s 32s 1m4s 2m2s 2m2s 2m2s"; got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
	if c := conditionOf(&pod.Status, corev1.PodReadyToStartContainers); c == nil || c.Status != corev1.ConditionFalse ||
		c.Message != noSandbox {
		t.Errorf("PodReadyToStartContainers: %+v", c)
	}
}

func plainPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u", Generation: 1},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main", Image: "i"}},
		},
	}
}

func stateOf(s *corev1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "running"
	case s.State.Waiting != nil:
		return s.State.Waiting.Reason + ": " + s.State.Waiting.Message
	}
	return "ended"
}

func warnings(s step) string {
	var out []string
	for _, ev := range s.events {
		if ev.Type == corev1.EventTypeWarning {
			out = append(out, ev.Reason+": "+ev.Message)
		}
	}
	return strings.Join(out, "; ")
}
