// Package measure computes the CPU and memory usage of simulated pods.
//
// Annotations of a pod, the same as kwok's, set the usage of its running containers. There is no state, so nothing has
// to be collected first. It is pure.
package measure

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// The annotations that set the usage of a pod's containers: one quantity for all, or quantities by container
// ("web=250m,proxy=10m").
const (
	cpuAnnotation    = "kwok.x-k8s.io/usage-cpu"
	memoryAnnotation = "kwok.x-k8s.io/usage-memory"
)

// The usage of containers without a setting, as in kwok.
var (
	defaultCPU    = resource.MustParse("1m")
	defaultMemory = resource.MustParse("1Mi")
)

// Window is the nominal measuring window.
const Window = 10 * time.Second

// Container is the usage of a container.
type Container struct {
	Name  string
	Usage corev1.ResourceList
}

// OfPod returns the usage of the running containers of a pod.
func OfPod(pod *corev1.Pod) (out []Container) {
	if pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	cpu := read(pod.Annotations[cpuAnnotation], defaultCPU)
	memory := read(pod.Annotations[memoryAnnotation], defaultMemory)
	add := func(name string, all []corev1.ContainerStatus) {
		for i := range all {
			if all[i].Name == name && all[i].State.Running != nil {
				out = append(out, Container{name, corev1.ResourceList{
					corev1.ResourceCPU:    cpu.of(name),
					corev1.ResourceMemory: memory.of(name),
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

// assigned is the parsed value of an annotation.
type assigned struct {
	named map[string]resource.Quantity // by container
	all   resource.Quantity            // for other containers
}

// read reads an annotation: the first value for a container counts. A value that cannot be read is left out.
func read(annotation string, otherwise resource.Quantity) assigned {
	s := assigned{named: map[string]resource.Quantity{}, all: otherwise}
	for one := range strings.SplitSeq(annotation, ",") {
		name, value, named := strings.Cut(one, "=")
		if !named {
			value = one
		}
		name = strings.TrimSpace(name)
		if _, known := s.named[name]; named && known {
			continue
		}
		q, err := quantity.Parse(strings.TrimSpace(value))
		switch {
		case err != nil || q.Sign() < 0:
		case named:
			s.named[name] = q
		default: // the values behind it are ignored
			s.all = q
			return s
		}
	}
	return s
}

func (s *assigned) of(container string) resource.Quantity {
	if q, ok := s.named[container]; ok {
		return q
	}
	return s.all
}

// Sum returns the total usage of containers.
func Sum(all []Container) corev1.ResourceList {
	cpu, memory := resource.Quantity{Format: resource.DecimalSI}, resource.Quantity{Format: resource.BinarySI}
	for _, one := range all {
		quantity.Add(&cpu, one.Usage[corev1.ResourceCPU])
		quantity.Add(&memory, one.Usage[corev1.ResourceMemory])
	}
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}
