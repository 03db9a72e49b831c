package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// preparePodCreate sets the initial status of a pod: Pending, with its QoS class, and with the condition for scheduling
// gates.
func preparePodCreate(obj object.Object, e catalog.Env) {
	if spec := object.Map(obj, "spec"); spec != nil {
		pod.DefaultLevel(spec)
	}
	preparePodCreateEarly(obj, e)
}

// preparePodCreateEarly is preparePodCreate for a pod with its pod-level resources.
func preparePodCreateEarly(obj object.Object, e catalog.Env) {
	status := map[string]any{"phase": string(corev1.PodPending)}
	if p, errs := rule.Read[corev1.Pod](obj); errs == nil {
		status["qosClass"] = string(qosClass(p))
	}
	spec, _ := obj["spec"].(map[string]any)
	if gates, _ := spec["schedulingGates"].([]any); len(gates) > 0 {
		status["conditions"] = []any{map[string]any{
			"type": string(corev1.PodScheduled), "status": string(corev1.ConditionFalse),
			"reason":        corev1.PodReasonSchedulingGated,
			"message":       "Scheduling is blocked due to non-empty scheduling gates",
			"lastProbeTime": nil, "lastTransitionTime": rule.Stamp(e.Now),
		}}
	}
	obj["status"] = status
	spreadByLabels(obj)
	profilesFromAnnotations(obj)
}

// qosClass returns the QoS class of a pod: Guaranteed if the CPU and memory limits of every container equal its
// requests, BestEffort if none has either, Burstable otherwise. Source: "Pod Quality of Service Classes" of Kubernetes'
// documentation.
func qosClass(p *corev1.Pod) corev1.PodQOSClass {
	if r := p.Spec.Resources; r != nil && (atPodLevelOf(r.Requests) || atPodLevelOf(r.Limits)) { // these alone count
		return qosOf([]corev1.ResourceRequirements{*r})
	}
	var all []corev1.ResourceRequirements
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		all = append(all, c.Resources)
	}
	return qosOf(all)
}

func qosOf(all []corev1.ResourceRequirements) corev1.PodQOSClass {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	limited := true
	for _, r := range all {
		addTo(requests, r.Requests)
		addTo(limits, r.Limits)
		limited = limited && len(counted(r.Limits)) == 2
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case !limited || len(requests) != len(limits):
		return corev1.PodQOSBurstable
	}
	for name, request := range requests {
		if limit := limits[name]; quantity.Cmp(limit, request) != 0 {
			return corev1.PodQOSBurstable
		}
	}
	return corev1.PodQOSGuaranteed
}

// atPodLevelOf reports whether a list has pod-level resources.
func atPodLevelOf(list corev1.ResourceList) bool {
	for name := range list {
		if pod.AtLevel(string(name)) {
			return true
		}
	}
	return false
}

// counted returns the entries of the list that determine the class.
func counted(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	addTo(out, list)
	return out
}

func addTo(sum, list corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := list[name]; ok && q.Sign() > 0 {
			total := sum[name].DeepCopy()
			quantity.Add(&total, q)
			sum[name] = total
		}
	}
}

// preparePodUpdate keeps fields that an update through the path may not change, and counts changes of spec.
func preparePodUpdate(obj, old object.Object, subresource string, e catalog.Env) {
	spec, was := object.Child(obj, "spec"), object.Map(old, "spec")
	switch subresource {
	case "resize":
		pod.KeepLevel(spec, was)
		if spec["resources"] != nil && sameLength(spec, was, "containers") && sameLength(spec, was, "initContainers") {
			pod.DefaultLevel(spec)
		}
	case "":
		pod.KeepLevel(spec, was)
	}
	preparePodUpdateEarly(obj, old, subresource, e)
}

// preparePodUpdateEarly is preparePodUpdate for a pod with its pod-level resources.
func preparePodUpdateEarly(obj, old object.Object, subresource string, _ catalog.Env) {
	switch subresource {
	case "status":
		rule.Keep(obj, old, "spec")
		rule.Keep(object.Child(obj, "metadata"), object.Child(old, "metadata"), "deletionTimestamp")
		rule.Keep(object.Child(obj, "metadata"), object.Child(old, "metadata"), "ownerReferences")
		keepObserved(object.Child(obj, "status"), object.Map(old, "status"))
		pod.KeepClaims(object.Child(obj, "status"), object.Map(old, "status"))
	case "binding":
		return // the server's own change of spec.nodeName and related fields; it does not count
	case "ephemeralcontainers":
		spec := rule.CopyOf(object.Child(old, "spec"))
		rule.Keep(spec, object.Child(obj, "spec"), "ephemeralContainers")
		rule.KeepAll(obj, old)
		obj["spec"] = spec
	case "resize":
		next, was := object.Child(obj, "spec"), object.Child(old, "spec")
		if !sameLength(next, was, "containers") || !sameLength(next, was, "initContainers") {
			break // validation rejects it
		}
		rule.KeepAll(obj, old)
		obj["spec"] = resized(was, next)
	default:
		rule.Keep(obj, old, "status")
	}
	rule.CountChange(obj, old)
}

func sameLength(a, b object.Object, list string) bool {
	x, _ := a[list].([]any)
	y, _ := b[list].([]any)
	return len(x) == len(y)
}

// resized returns the spec with the resources of next, which must have as many containers.
func resized(spec, next object.Object) object.Object {
	out := rule.CopyOf(spec)
	rule.Keep(out, next, "resources")
	for _, list := range []string{"containers", "initContainers"} {
		was, wanted := object.Objects(spec[list]), object.Objects(next[list])
		changed := make([]any, len(was))
		for i, c := range was {
			if object.String(c, "name") != object.String(wanted[i], "name") {
				changed, _ = next[list].([]any) // validation rejects it
				break
			}
			c = rule.CopyOf(c)
			rule.Keep(c, wanted[i], "resources")
			rule.Keep(c, wanted[i], "resizePolicy")
			changed[i] = c
		}
		if len(was) > 0 {
			out[list] = changed
		}
	}
	return out
}
