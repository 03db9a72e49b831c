// Package measure says what simulated pods use of CPU and memory.
//
// Annotations of a pod, which kwok has too, say what its containers use as long as they run. Nothing is kept, so
// nothing has to be collected first. All is pure.
package measure

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The annotations of a pod by which it says what its containers use: a quantity for each of them, or quantities by name
// ("web=250m,proxy=10m").
const (
	cpuAnnotation    = "kwok.x-k8s.io/usage-cpu"
	memoryAnnotation = "kwok.x-k8s.io/usage-memory"
)

// What containers use of which nothing is said, as kwok has it.
var (
	defaultCPU    = resource.MustParse("1m")
	defaultMemory = resource.MustParse("1Mi")
)

// Window is the time over which usage counts as measured.
const Window = 10 * time.Second

// Container is what a container uses.
type Container struct {
	Name  string
	Usage corev1.ResourceList
}

// OfPod returns what the containers of a pod use, those that run.
func OfPod(pod *corev1.Pod) (out []Container) {
	if pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	add := func(name string, all []corev1.ContainerStatus) {
		for i := range all {
			if all[i].Name == name && all[i].State.Running != nil {
				out = append(out, Container{name, corev1.ResourceList{
					corev1.ResourceCPU:    said(pod, cpuAnnotation, name, defaultCPU),
					corev1.ResourceMemory: said(pod, memoryAnnotation, name, defaultMemory),
				}})
			}
		}
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Name, pod.Status.ContainerStatuses)
	}
	for i := range pod.Spec.InitContainers { // sidecars
		add(pod.Spec.InitContainers[i].Name, pod.Status.InitContainerStatuses)
	}
	return out
}

// said returns what an annotation says of a container. What cannot be read is as if it were not there.
func said(pod *corev1.Pod, annotation, container string, otherwise resource.Quantity) resource.Quantity {
	for _, one := range strings.Split(pod.Annotations[annotation], ",") {
		name, value, named := strings.Cut(one, "=")
		if !named {
			name, value = container, one
		}
		if strings.TrimSpace(name) != container {
			continue
		}
		if q, err := resource.ParseQuantity(strings.TrimSpace(value)); err == nil && q.Sign() >= 0 {
			return q
		}
	}
	return otherwise
}

// Sum returns what containers use together.
func Sum(all []Container) corev1.ResourceList {
	cpu, memory := resource.Quantity{Format: resource.DecimalSI}, resource.Quantity{Format: resource.BinarySI}
	for _, one := range all {
		cpu.Add(one.Usage[corev1.ResourceCPU])
		memory.Add(one.Usage[corev1.ResourceMemory])
	}
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}
