package pod_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// waits reports a state in which the only container of a pod waits for a reason.
func waits(reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

// TestPodWaitsForObjects checks that pods without their ConfigMap or Secret wait, and run once a client creates it.
func TestPodWaitsForObjects(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads()).RESTConfig())
	env := simple("env")
	env.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	_, first := create(t, c, env)
	volume := simple("volume")
	volume.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}}}
	volume.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	_, second := create(t, c, volume)
	until(t, first, "a pod without its ConfigMap", waits("CreateContainerConfigError"))
	p := until(t, second, "a pod without its Secret", waits("ContainerCreating"))
	if p.Status.PodIP != "" || p.Status.HostIP == "" {
		t.Errorf("addresses of a pod without a sandbox: %q on %q", p.Status.PodIP, p.Status.HostIP)
	}
	want := `MountVolume.SetUp failed for volume "v" : secret "keys" not found`
	if got := untilEvents(t, c, "FailedMount")["FailedMount"]; got != want {
		t.Errorf("FailedMount says %q", got)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, first, "a pod with its ConfigMap", ready)
	until(t, second, "a pod with its Secret", ready)
}

// TestResizeWaitsForRoom checks that a resize is applied, and that one without room waits until another pod is gone.
func TestResizeWaitsForRoom(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads("cpu=1")).RESTConfig())
	withCPU := func(name, cpu string) *corev1.Pod {
		p := simple(name)
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return p
	}
	_, large := create(t, c, withCPU("large", "600m"))
	_, small := create(t, c, withCPU("small", "100m"))
	until(t, large, "a ready pod", ready)
	until(t, small, "a ready pod", ready)
	resize(t, c, "200m")
	until(t, small, "a resized pod", runsWith("200m"))
	resize(t, c, "500m")
	p := until(t, small, "a deferred resize", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonDeferred &&
				c.Message == "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"
		})
	})
	if !runsWith("200m")(p) {
		t.Errorf("a deferred resize: %+v", p.Status.ContainerStatuses)
	}
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p = until(t, small, "a resized pod", runsWith("500m"))
	if p.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the resized container: %+v", p.Status.ContainerStatuses[0])
	}
	untilEvents(t, c, "ResizeStarted", "ResizeCompleted", "ResizeDeferred")
}

// resize changes the CPU of the pod "small".
func resize(t *testing.T, c *kubernetes.Clientset, cpu string) {
	t.Helper()
	pods := c.CoreV1().Pods("default")
	p, err := pods.Get(t.Context(), "small", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	if _, err := pods.UpdateResize(t.Context(), "small", p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runsWith reports a state in which the only container of a pod has an amount of CPU, allocated and in use.
func runsWith(cpu string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		s := &p.Status.ContainerStatuses[0]
		allocated := s.AllocatedResources[corev1.ResourceCPU]
		return s.Resources.Requests.Cpu().String() == cpu && allocated.String() == cpu
	}
}
