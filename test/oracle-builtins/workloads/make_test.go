package workloads

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Objects of stories are merges of bases with the keys in the story. The keys are fields of the spec, except for some
// that stand for other parts:
const (
	podKey  = "pod"  // the spec of the pods
	tagsKey = "tags" // their annotations
	markKey = "mark" // their labels
	metaKey = "meta" // the object's metadata
	jobKey  = "job"  // the spec of a CronJob's Jobs
)

// failures maps keys for failing pods to the annotations that cause the failure.
var failures = map[string]string{
	"unready": "bowsprit.dev/simulate-unready", "exits": "bowsprit.dev/simulate-exit-code",
	"runs": "bowsprit.dev/simulate-run-time", "delay": "bowsprit.dev/simulate-start-delay",
}

// pathTo returns the path of a key in an object of a kind.
func pathTo(resource, key string) []string {
	template := []string{"spec", "template"}
	if resource == "cronjobs" {
		template = []string{"spec", "jobTemplate", "spec", "template"}
	}
	switch {
	case key == metaKey:
		return []string{"metadata"}
	case key == jobKey:
		return []string{"spec", "jobTemplate", "spec"}
	case resource == "endpoints":
		return []string{"metadata", map[string]string{tagsKey: "annotations", markKey: "labels"}[key]}
	case resource == "pods" && key == podKey:
		return []string{"spec"}
	case resource == "pods":
		return []string{"metadata", map[string]string{tagsKey: "annotations", markKey: "labels"}[key]}
	case key == podKey:
		return append(template, "spec")
	case key == tagsKey:
		return append(template, "metadata", "annotations")
	}
	return append(template, "metadata", "labels")
}

// bases are the objects without keys in the story; NAME stands for their name.
var bases = map[string]string{
	"pods":        `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: c}]}`,
	"deployments": `{selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: POD}}`,
	"statefulsets": `{serviceName: NAME, selector: {matchLabels: {app: NAME}},
		template: {metadata: {labels: {app: NAME}}, spec: POD}}`,
	"replicationcontrollers": `{selector: {app: NAME}, template: {metadata: {labels: {app: NAME}}, spec: POD}}`,
	"jobs":                   `{template: {spec: ENDING}}`,
	"cronjobs":               `{schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: ENDING}}}}`,
	"poddisruptionbudgets":   `{selector: {matchLabels: {app: NAME}}}`,
	"services":               `{selector: {app: NAME}, ports: [{port: 80}]}`,
	"persistentvolumeclaims": `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`,
	"horizontalpodautoscalers": `{maxReplicas: 10,
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}`,
	"endpoints": `{}`, // they have no spec: all keys are fields of the object
}

// base returns an object of a kind without the keys of a story.
func base(resource, name string) (*unstructured.Unstructured, error) {
	of := resource
	if resource == "replicasets" || resource == "daemonsets" {
		of = "deployments"
	}
	text, ok := bases[of]
	if !ok {
		return nil, fmt.Errorf("%s cannot be made in a line", resource)
	}
	ending := strings.Replace(bases["pods"], "{", "{restartPolicy: Never, ", 1)
	text = strings.NewReplacer("NAME", name, "POD", bases["pods"], "ENDING", ending).Replace(text)
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(kinds[resource].GroupVersion().String())
	o.SetKind(kindNames[resource])
	o.SetName(name)
	if resource == "pods" {
		o.SetLabels(map[string]string{"app": name})
	}
	return o, nil
}

var kindNames = map[string]string{
	"pods": "Pod", "deployments": "Deployment", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet",
	"daemonsets": "DaemonSet", "replicationcontrollers": "ReplicationController", "jobs": "Job", "cronjobs": "CronJob",
	"poddisruptionbudgets": "PodDisruptionBudget", "services": "Service",
	"persistentvolumeclaims": "PersistentVolumeClaim", "endpoints": "Endpoints",
	"horizontalpodautoscalers": "HorizontalPodAutoscaler",
}

// change returns the keys of a story as a merge patch.
func change(resource, text string) (map[string]any, error) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	spec := map[string]any{}
	out := map[string]any{"spec": spec}
	for key, value := range fields {
		if annotation, ok := failures[key]; ok {
			if value != nil {
				value = fmt.Sprint(value)
			}
			key, value = tagsKey, map[string]any{annotation: value}
		}
		switch key {
		case podKey, tagsKey, markKey, metaKey, jobKey:
			path := pathTo(resource, key)
			for i := len(path) - 1; i >= 0; i-- {
				value = map[string]any{path[i]: value}
			}
			merge(out, value.(map[string]any))
		case "subsets":
			merge(out, map[string]any{key: value})
		default:
			merge(spec, map[string]any{key: value})
		}
	}
	return out, nil
}

// merge changes into by a merge patch that may have nulls itself.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		had, isMap := into[key].(map[string]any)
		if next, ok := value.(map[string]any); ok && isMap {
			merge(had, next)
			continue
		}
		into[key] = value
	}
}

// without drops the fields that a merge has set to null.
func without(in map[string]any) map[string]any {
	maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	for _, v := range in {
		if m, ok := v.(map[string]any); ok {
			without(m)
		}
	}
	return in
}
