package workloads

import (
	"context"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// kinds are what stories are about, by the resource's name.
var kinds = resources()

func resources() map[string]schema.GroupVersionResource {
	all := map[string]schema.GroupVersionResource{}
	for gv, names := range map[string][]string{
		"v1":             {"pods", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes", "events"},
		"apps/v1":        {"deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"},
		"batch/v1":       {"jobs", "cronjobs"},
		"policy/v1":      {"poddisruptionbudgets"},
		"autoscaling/v2": {"horizontalpodautoscalers"},
	} {
		parsed, _ := schema.ParseGroupVersion(gv)
		for _, name := range names {
			all[name] = parsed.WithResource(name)
		}
	}
	return all
}

// state returns what is in a namespace as text, without what differs from run to run: names that are made up, uids,
// times, addresses, nodes, and how often something was written. Of controllers' events it has what they are about and
// their reason.
func state(ctx context.Context, client dynamic.Interface, namespace string) (string, error) {
	var all []*unstructured.Unstructured
	events := map[string]bool{}
	renamed := []string{}
	for resource, gvr := range kinds {
		of := client.Resource(gvr).Namespace(namespace)
		if resource == "persistentvolumes" {
			of = client.Resource(gvr).Namespace("")
		}
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			o := &list.Items[i]
			if resource == "persistentvolumes" {
				claim, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "namespace")
				if claim != namespace && o.GetLabels()["story"] != namespace {
					continue
				}
			}
			if prefix := o.GetGenerateName(); prefix != "" {
				renamed = append(renamed, o.GetName(), prefix+"*")
			}
			if all = append(all, o); resource == "events" {
				all = all[:len(all)-1]
				about, _, _ := unstructured.NestedStringMap(o.Object, "involvedObject")
				from, _, _ := unstructured.NestedString(o.Object, "source", "component")
				if from == "kubelet" || from == "" { // whether a pod that goes at once is seen by them is chance
					continue
				}
				kind, _, _ := unstructured.NestedString(o.Object, "type")
				reason, _, _ := unstructured.NestedString(o.Object, "reason")
				said := []string{about["kind"], about["name"], kind, reason, from}
				events[strings.Join(said, " ")] = true
			}
		}
	}
	names := strings.NewReplacer(renamed...)
	var out []string
	for _, o := range all {
		clean(o)
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		out = append(out, settled(names.Replace(string(data))))
	}
	slices.Sort(out)
	var said []string
	for text := range events {
		text = settled(names.Replace(text))
		if kind, _, _ := strings.Cut(text, " "); kind == "Pod" {
			text = gone.ReplaceAllString(text, "-*") // also of pods that are not there any more
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	slices.Sort(said)
	return strings.Join(out, "---\n") + "events:\n" + strings.Join(said, "\n") + "\n", nil
}

var gone = regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{5}|\*)\b`)

// clean takes out of an object what differs from run to run.
func clean(o *unstructured.Unstructured) {
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
	if o.GetKind() != "Pod" {
		return
	}
	unstructured.RemoveNestedField(o.Object, "spec", "nodeName")
	for _, field := range []string{"podIP", "podIPs", "hostIP", "hostIPs"} {
		unstructured.RemoveNestedField(o.Object, "status", field)
	}
}

// volatile is what differs from run to run, and what stands for it.
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
