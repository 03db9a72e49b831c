package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func podKind() rule.Kind {
	return rule.Of[corev1.Pod](rule.Kind{
		Group: coreV1, Kind: "Pod", DropGated: pod.DropGatedAt("spec"), Plural: "pods", Short: []string{"po"},
		Categories: rule.CategoryAll,
		Status:     true, Generation: true, ReturnsDeleted: true,
		Subresources: podSubresources(),
		ResetFields: map[string]catalog.ResetFields{
			"status":              rule.Except("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
			"ephemeralcontainers": rule.Only("spec.ephemeralContainers"),
			"resize": rule.Only("spec.containers.*.resources", "spec.containers.*.resizePolicy",
				"spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy"),
		},
		Strategy: &catalog.Strategy{
			Cells:               rule.Printed(pod.Cells),
			Decode:              pod.Decode,
			Default:             defaultPod,
			PrepareCreate:       preparePodCreate,
			PrepareUpdate:       preparePodUpdate,
			GracePeriod:         podGracePeriod,
			UnconditionalUpdate: true,
			FieldLabels:         podFields(),
		},
		Warn:       warnPod,
		WarnStatus: warnPodStatus,
	})
}

// podFields are the FieldLabels of pods.
func podFields() map[string]func(object.Object) string {
	out := rule.FieldLabels("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"status.phase", "status.nominatedNodeName")
	out["spec.host"] = out["spec.nodeName"]
	out["spec.hostNetwork"] = rule.TruthAt("spec", "hostNetwork")
	out["status.podIP"] = func(pod object.Object) string {
		for _, ip := range object.Objects(object.Map(pod, "status")["podIPs"]) {
			return object.String(ip, "ip")
		}
		return ""
	}
	out["status.podIPs"] = func(object.Object) string { return "" } // Kubernetes accepts it and matches nothing
	return out
}

func podSubresources() []catalog.Subresource {
	return []catalog.Subresource{
		rule.Connection("attach", "PodAttachOptions", "create", "get"),
		rule.OtherSubresource("binding", "", "", "Binding", "create"),
		rule.ObjectSubresource("Pod", "ephemeralcontainers", rule.ViewVerbs...),
		rule.OtherSubresource("eviction", "policy", "v1", "Eviction", "create"),
		rule.Connection("exec", "PodExecOptions", "create", "get"),
		rule.Connection("log", "Pod", "get"),
		rule.Connection("portforward", "PodPortForwardOptions", "create", "get"),
		rule.Connection("proxy", "PodProxyOptions", proxied...),
		rule.ObjectSubresource("Pod", "resize", rule.ViewVerbs...),
	}
}

// podGracePeriod returns the requested grace period, else the pod's. It is 0 for a pod that is unscheduled or has
// ended.
func podGracePeriod(obj object.Object, requested *int64) int64 {
	switch phase := object.String(obj, "status", "phase"); {
	case object.String(obj, "spec", "nodeName") == "", phase == string(corev1.PodFailed),
		phase == string(corev1.PodSucceeded):
		return 0
	case requested != nil:
		return atLeastOne(*requested)
	}
	spec, _ := obj["spec"].(map[string]any)
	period, _ := spec["terminationGracePeriodSeconds"].(int64)
	return atLeastOne(period)
}

// atLeastOne turns a negative grace period, as in old objects, into one second.
func atLeastOne(period int64) int64 {
	if period < 0 {
		return 1
	}
	return period
}

// warnPodStatus warns about addresses in the status of a pod.
func warnPodStatus(w *rule.Warnings) {
	for _, list := range []string{"podIPs", "hostIPs"} {
		for i, ip := range rule.Objects(object.Map(w.Obj, "status")[list]) {
			w.IP(field.NewPath("status", list).Index(i).Child("ip"), object.String(ip, "ip"))
		}
	}
}

// warnPod does not warn about updates, since controllers and nodes make them.
func warnPod(w *rule.Warnings) {
	if w.Old != nil {
		return
	}
	w.NameIsHostname("the Pod's hostname")
	pod.WarnSpec(w, w.Obj, nil)
}

// validatePod validates a pod's annotations and spec.
func validatePod(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	meta, spec := object.Map(obj, "metadata"), object.Map(obj, "spec")
	if meta == nil {
		meta = object.Object{}
	}
	path := field.NewPath("spec")
	pod.ValidateAnnotations(val, rule.StringMap(meta["annotations"]), spec, field.NewPath("metadata", "annotations"))
	pod.ValidateSpec(val, &pod.Scope{Spec: spec, Meta: meta, Path: path})
	if object.String(spec, "serviceAccountName") == "" {
		for i, v := range rule.Objects(spec["volumes"]) {
			for k, s := range rule.Objects(object.Map(v, "projected")["sources"]) {
				if s["serviceAccountToken"] != nil {
					val.Forbidden(path.Child("volumes").Index(i).Child("projected",
						"sources").Index(k).Child("serviceAccountToken"),
						"must not be specified when serviceAccountName is not set")
				}
			}
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range rule.Objects(spec[list]) {
			image := object.String(c, "image")
			val.Invalids(path.Child(list).Index(i).Child("image"), image, rule.Trimmed(image))
		}
	}
}

func gatedNode(val *rule.Validation, _ rule.Value) {
	spec := object.Map(val.Obj, "spec")
	if object.String(spec, "nodeName") != "" && !rule.IsEmpty(spec["schedulingGates"]) {
		val.Forbidden(field.NewPath("spec", "nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
}

// podFunctions are the functions that pod.txt names.
func podFunctions() rule.Functions {
	return rule.Functions{
		"addedContainers": addedContainers,
		"gatedNode":       gatedNode,
		"pod":             validatePod,
		"podAnnotationsMatch": func(val *rule.Validation, _ rule.Value) {
			pod.CheckAnnotationsMatch(val, object.Map(val.Obj, "metadata"), object.Map(val.Obj, "spec"),
				field.NewPath("spec"))
		},
		"podResize": podResize,
		"podStatus": podStatus,
		"podUpdate": podUpdate,
	}
}
