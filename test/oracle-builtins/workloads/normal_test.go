package workloads

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// kinds are the resources of stories, by name.
var kinds = resources()

func resources() map[string]schema.GroupVersionResource {
	all := map[string]schema.GroupVersionResource{}
	for gv, names := range map[string][]string{
		"v1": {"pods", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes", "events", "services",
			"endpoints", "resourcequotas", "nodes"},
		"apps/v1":             {"deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"},
		"batch/v1":            {"jobs", "cronjobs"},
		"discovery.k8s.io/v1": {"endpointslices"},
		"policy/v1":           {"poddisruptionbudgets"},
		"autoscaling/v2":      {"horizontalpodautoscalers"},
	} {
		parsed, _ := schema.ParseGroupVersion(gv)
		for _, name := range names {
			all[name] = parsed.WithResource(name)
		}
	}
	return all
}

// state returns the objects of a namespace as text, without the parts that differ from run to run: generated names,
// uids, times, addresses, nodes, and numbers of writes. For events of controllers it has the object and the reason.
func state(on *side, namespace string, skip leeway) (string, error) {
	var all []*unstructured.Unstructured
	events := map[string]bool{}
	renamed := []string{}
	if len(on.list("persistentvolumeclaims", namespace)) > 0 {
		skip.updates = true
	}
	for resource := range kinds {
		for _, o := range on.list(resource, namespace) {
			if prefix := o.GetGenerateName(); prefix != "" {
				renamed = append(renamed, settled(o.GetName()), settled(prefix)+"*")
			}
			if resource != "events" {
				all = append(all, o)
			} else if text := eventText(o); text != "" && !(skip.updates && updatesPod(text)) {
				events[text] = true
			}
		}
	}
	names := strings.NewReplacer(renamed...)
	var out []string
	for _, o := range all {
		clean(o, on.places)
		if skip.progress {
			nameless(o)
		}
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		out = append(out, names.Replace(settled(string(data))))
	}
	slices.Sort(out)
	var messages []string
	for text := range events {
		text = names.Replace(settled(text))
		if kind, _, _ := strings.Cut(text, " "); kind == "Pod" {
			text = gone.ReplaceAllString(text, "-*") // also of deleted pods
		}
		if !slices.Contains(messages, text) {
			messages = append(messages, text)
		}
	}
	slices.Sort(messages)
	return strings.Join(out, "---\n") + "events:\n" + strings.Join(messages, "\n") + "\n", nil
}

// leeway selects the results of a story that depend on the timing of informers in Kubernetes' controllers.
type leeway struct {
	// progress ignores the ReplicaSet in the condition Progressing. When a Deployment is scaled to zero and gets
	// another template at once, a status update with fewer pods counts as progress of the new ReplicaSet. Without such
	// an update, the condition stays at the rollout before.
	progress bool
	// updates ignores the events SuccessfulUpdate and Create Pod of pods with claims. If the volume binder updates a
	// claim first, a StatefulSet cannot write the claim's owners when it makes the pod. It then does so later with an
	// update of the pod, and omits the event for the creation.
	updates bool
}

// see sets the leeway for a line.
func (l *leeway) see(line string) {
	if strings.HasPrefix(line, "set deployments/") && strings.Contains(line, "replicas: 0") {
		l.progress = true
	}
	if strings.HasPrefix(line, "make statefulsets/") && strings.Contains(line, "volumeClaimTemplates") {
		l.updates = true // for good: the claims may be deleted before the events are compared
	}
}

func updatesPod(event string) bool {
	return strings.HasPrefix(event, "StatefulSet ") &&
		(strings.Contains(event, " SuccessfulUpdate ") || strings.Contains(event, ": Create Pod "))
}

// nameless removes the name of the ReplicaSet from a Deployment's condition Progressing.
func nameless(o *unstructured.Unstructured) {
	if o.GetKind() != "Deployment" {
		return
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		if c := v.(map[string]any); c["type"] == "Progressing" {
			message, _ := c["message"].(string)
			c["message"] = quoted.ReplaceAllString(message, `"*"`)
		}
	}
	if list != nil {
		_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
	}
}

var quoted = regexp.MustCompile(`"[^"]*"`)

// chance lists the reasons of events that depend on the timing of informers in Kubernetes' controllers: a CronJob that
// misses a Job that it has just deleted, a volume for a claim that is being deleted, a write conflict, a budget whose
// pods or controller are not in the cache yet, Jobs that appear before their CronJob.
var chance = map[string]bool{
	"MissingJob": true, "ProvisioningFailed": true, "FailedUpdate": true, "NoPods": true,
	"CalculateExpectedPodCountFailed": true, "UnexpectedJob": true, "SawCompletedJob": true,
}

// timed lists the reasons of events with progress in their message.
var timed = map[string]bool{"ScalingReplicaSet": true}

// eventText returns the object and the reason of an event. It returns "" for kubelets' events, because a kubelet may
// miss short-lived pods.
func eventText(o *unstructured.Unstructured) string {
	about, _, _ := unstructured.NestedStringMap(o.Object, "involvedObject")
	from, _, _ := unstructured.NestedString(o.Object, "source", "component")
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	reason, _, _ := unstructured.NestedString(o.Object, "reason")
	if from == "kubelet" || from == "" || chance[reason] {
		return ""
	}
	text := strings.Join([]string{about["kind"], about["name"], kind, reason, from}, " ")
	message, _, _ := unstructured.NestedString(o.Object, "message")
	if strings.HasPrefix(message, "(combined from similar events)") {
		return "" // their number and their sources vary
	}
	if !timed[reason] {
		text += ": " + onNode.ReplaceAllString(gone.ReplaceAllString(strings.TrimSpace(message), "-*"), "on node *")
	}
	return text
}

var onNode = regexp.MustCompile(`on node [\w-]+`)

var gone = regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{5}|\*)\b`)

// clean removes the parts of an object that differ from run to run, including the nodes of pods unless places is set.
func clean(o *unstructured.Unstructured, places bool) {
	meta := o.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(meta, field)
	}
	// How many steps a rollout takes depends on which pods are seen to be ready at a time.
	if seen, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); ok {
		_ = unstructured.SetNestedField(o.Object, seen-o.GetGeneration(), "status", "observedGeneration")
	}
	if kind := o.GetKind(); kind == "ReplicaSet" || kind == "Job" {
		delete(meta, "generation")
	}
	switch o.GetKind() {
	case "Deployment": // the condition that changed last depends on the states seen between two syncs
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(endpointText(a), endpointText(b)) })
		if list != nil {
			_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
		}
	case "Job":
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, v := range list {
			c := v.(map[string]any)
			message, _ := c["message"].(string)
			c["message"] = gone.ReplaceAllString(message, "-*")
		}
		if list != nil {
			_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
		}
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(o.Object, "spec", field)
		}
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		for _, p := range ports {
			delete(p.(map[string]any), "nodePort")
		}
		if ports != nil {
			_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
		}
	case "Endpoints":
		cleanEndpoints(o)
	case "Node": // the order of taints and the time of the first ones vary
		taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
		for _, t := range taints {
			delete(t.(map[string]any), "timeAdded")
		}
		slices.SortFunc(taints, func(a, b any) int { return strings.Compare(endpointText(a), endpointText(b)) })
		if taints != nil {
			_ = unstructured.SetNestedSlice(o.Object, taints, "spec", "taints")
		}
	case "EndpointSlice":
		delete(meta, "generation") // it counts the writes
		untimed(meta)
		labels := o.GetLabels()
		if labels["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io" {
			delete(meta, "generateName") // which is lost when another slice's contents are written into it
			o.SetName(labels["kubernetes.io/service-name"] + "-*")
		}
		if anonymous(o.Object["endpoints"], "addresses"); !places {
			anonymous(o.Object["endpoints"], "nodeName", "zone", "hints")
		}
	}
	if o.GetKind() != "Pod" {
		return
	}
	unstructured.RemoveNestedField(o.Object, "spec", "nodeName")
	// A StatefulSet has volumes in no order.
	if volumes, ok, _ := unstructured.NestedSlice(o.Object, "spec", "volumes"); ok {
		slices.SortFunc(volumes, func(a, b any) int { return strings.Compare(endpointText(a), endpointText(b)) })
		_ = unstructured.SetNestedSlice(o.Object, volumes, "spec", "volumes")
	}
	unstructured.RemoveNestedField(o.Object, "spec", "affinity") // of a DaemonSet's pod, its node
	for _, field := range []string{"podIP", "podIPs", "hostIP", "hostIPs"} {
		unstructured.RemoveNestedField(o.Object, "status", field)
	}
}

// cleanEndpoints takes addresses out of Endpoints, which are ordered by them.
func cleanEndpoints(o *unstructured.Unstructured) {
	subsets, _, _ := unstructured.NestedSlice(o.Object, "subsets")
	for _, v := range subsets {
		subset := v.(map[string]any)
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			anonymous(subset[list], "ip", "nodeName")
		}
	}
	slices.SortFunc(subsets, func(a, b any) int { return strings.Compare(endpointText(a), endpointText(b)) })
	o.Object["subsets"] = subsets
	untimed(o.Object["metadata"].(map[string]any))
}

// untimed removes the annotation with the time of a change, from which kube-proxy measures its delay. The server does
// not simulate the annotation, since it has no readers.
func untimed(meta map[string]any) {
	annotations, _ := meta["annotations"].(map[string]any)
	if delete(annotations, "endpoints.kubernetes.io/last-change-trigger-time"); len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// anonymous removes fields from the endpoints of a list, and sorts the rest by text, without the generated parts of
// names.
func anonymous(list any, fields ...string) {
	all, _ := list.([]any)
	for _, v := range all {
		e, _ := v.(map[string]any)
		for _, field := range fields {
			delete(e, field)
		}
	}
	slices.SortStableFunc(all, func(a, b any) int { return strings.Compare(endpointText(a), endpointText(b)) })
}

func endpointText(e any) string {
	data, _ := yaml.Marshal(e) // it was decoded before
	return gone.ReplaceAllString(settled(string(data)), "-*")
}

// volatile are the parts that differ from run to run, and their replacements.
var volatile = []struct {
	found *regexp.Regexp
	write string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"?`), "TIME"},
	{regexp.MustCompile(`(sha256|simulated)://?[0-9a-f:]+`), "ID"},
	{regexp.MustCompile(`resourceVersion: "\d+"`), "resourceVersion: VERSION"},
	{regexp.MustCompile(`-\d{8}\b`), "-MINUTE"},
}

func settled(text string) string {
	for _, v := range volatile {
		text = v.found.ReplaceAllString(text, v.write)
	}
	return text
}
