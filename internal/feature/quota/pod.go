package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

const podCount = "count/pods"

// podNames are the names by which quotas limit pods, other than huge pages and extended resources.
var podNames = []string{
	podCount, "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
	"limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods",
}

// mustSay are the names that each container must set if a quota limits them.
var mustSay = []string{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}

var pods = &evaluator{handles: podHandles, limits: podLimits, measure: measurePod, lacks: podLacks}

// podHandles reports whether a write may change a pod's usage: a creation, a resize, or a new deadline, which moves the
// pod into another scope.
func podHandles(a *admit.Attributes) bool {
	switch {
	case a.Subresource == "resize":
		return a.Operation == admit.Update
	case a.Subresource != "":
		return false
	case a.Operation == admit.Update:
		return hasDeadline(a.Object) != hasDeadline(a.Old)
	}
	return a.Operation == admit.Create
}

func hasDeadline(pod admit.Object) bool {
	n, ok := catalog.At(pod, "spec")["activeDeadlineSeconds"].(int64)
	return ok && n >= 0
}

func podLimits(name string) bool {
	return slices.Contains(podNames, name) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(name, corev1.ResourceRequestsHugePagesPrefix) || extendedName(name)
}

// extendedName reports whether a name of a quota limits an extended resource.
func extendedName(name string) bool {
	of, ok := strings.CutPrefix(name, corev1.DefaultResourceRequestsPrefix)
	return ok && (!native(name) || strings.HasPrefix(of, resourcev1.ResourceDeviceClassPrefix))
}

// extendedResource reports whether a container requests an extended resource by a name.
func extendedResource(name string) bool {
	if strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	return !native(name) && !strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// measurePod: a pod that has ended, or that should have ended by now, is only counted.
func measurePod(raw []byte) (*measure, error) {
	pod, err := typed[corev1.Pod](raw)
	if err != nil {
		return nil, err
	}
	m := &measure{amounts: amounts{podCount: one()}, scopes: scopesOfPod(pod)}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return m, nil
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		m.after = maps.Clone(m.amounts)
		m.until = pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	addTo(m.amounts, podAmounts(pod))
	return m, nil
}

// podAmounts returns the usage of a pod that has not ended.
func podAmounts(pod *corev1.Pod) amounts {
	return wanted(PodRequests(pod), PodLimits(pod))
}

// wanted returns requests and limits by their names in quotas.
func wanted(requests, limits corev1.ResourceList) amounts {
	out := amounts{"pods": one()}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage"} {
		if q, ok := requests[name]; ok {
			out[name], out["requests."+name] = q, q
		}
		if q, ok := limits[name]; ok {
			out["limits."+name] = q
		}
	}
	for name, q := range requests {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			out[name], out["requests."+name] = q, q
		}
		if extendedResource(string(name)) {
			out["requests."+name] = q
		}
	}
	return out
}

// podLacks returns the missing requests and limits of a pod. Without values of its own, a pod must set for each
// container the values that quotas limit.
func podLacks(required []corev1.ResourceName, raw []byte) string {
	pod, err := typed[corev1.Pod](raw)
	if err != nil || speaksForItself(pod) {
		return ""
	}
	var parts []string
	for _, name := range mustSay {
		if !slices.Contains(required, corev1.ResourceName(name)) {
			continue
		}
		silent := map[string]bool{}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			if _, ok := wanted(c.Resources.Requests, c.Resources.Limits)[corev1.ResourceName(name)]; !ok {
				silent[c.Name] = true
			}
		}
		if len(silent) > 0 {
			parts = append(parts, fmt.Sprintf("%s for: %s", name,
				strings.Join(slices.Sorted(maps.Keys(silent)), ",")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "must specify " + strings.Join(parts, "; ")
}
