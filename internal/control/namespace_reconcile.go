package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// remains describes the remaining objects of one resource in a namespace.
type remains struct {
	resource   string         // "crontabs.stable.example.com"; with a trailing dot in the core group: "configmaps."
	objects    int            // number of objects
	finalizers map[string]int // finalizer -> number of objects with it
}

// podsRemain is the resource of remaining pods.
const podsRemain = "pods."

// condition is a namespace condition without its time.
type condition struct {
	kind            corev1.NamespaceConditionType
	status          corev1.ConditionStatus
	reason, message string
}

// namespaceConditions describes the progress of a namespace's deletion in the words of Kubernetes' namespace
// controller.
func namespaceConditions(left []remains, failures []error) []condition {
	cs := []condition{
		{corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "ResourcesDiscovered",
			"All resources successfully discovered"},
		{corev1.NamespaceDeletionGVParsingFailure, corev1.ConditionFalse, "ParsedGroupVersions",
			"All legacy kube types successfully parsed"},
		{corev1.NamespaceDeletionContentFailure, corev1.ConditionFalse, "ContentDeleted",
			"All content successfully deleted, may be waiting on finalization"},
		{corev1.NamespaceContentRemaining, corev1.ConditionFalse, "ContentRemoved", "All content successfully removed"},
		{corev1.NamespaceFinalizersRemaining, corev1.ConditionFalse, "ContentHasNoFinalizers",
			"All content-preserving finalizers finished"},
	}
	if len(failures) > 0 {
		var texts []string
		for _, err := range failures {
			texts = append(texts, err.Error())
		}
		slices.Sort(texts)
		cs[2] = condition{corev1.NamespaceDeletionContentFailure, corev1.ConditionTrue, "ContentDeletionFailed",
			fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(failures),
				strings.Join(texts, ", "))}
	}
	var resources []string
	finalizers := map[string]int{}
	for _, r := range left {
		resources = append(resources, fmt.Sprintf("%s has %d resource instances", r.resource, r.objects))
		for name, n := range r.finalizers {
			finalizers[name] += n
		}
	}
	if len(resources) > 0 {
		slices.Sort(resources)
		cs[3] = condition{corev1.NamespaceContentRemaining, corev1.ConditionTrue, "SomeResourcesRemain",
			"Some resources are remaining: " + strings.Join(resources, ", ")}
	}
	if len(finalizers) > 0 {
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(finalizers)) {
			texts = append(texts, fmt.Sprintf("%s in %d resource instances", name, finalizers[name]))
		}
		cs[4] = condition{corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: " + strings.Join(texts, ", ")}
	}
	return cs
}

// Elsewhere describes other servers' objects in a namespace.
type Elsewhere struct {
	Left []Held
	// Failures are the errors of servers that refuse a deletion. Silent are servers that may have objects and do not
	// answer.
	Failures []error
	Silent   []Silent
}

// Silent is a server that does not answer.
type Silent struct {
	// Server is the name of its APIService.
	Server string
	// Undiscovered is true if the server is unavailable: "wardle.example.com/v1: stale GroupVersion discovery:
	// wardle.example.com/v1". Otherwise Err is the error of a request.
	Undiscovered bool
	Err          error
}

// errorsOf returns the errors of unavailable servers, and of the other silent ones.
func errorsOf(silent []Silent) (undiscovered, unanswered []error) {
	for _, s := range silent {
		if s.Undiscovered {
			undiscovered = append(undiscovered, s.Err)
		} else {
			unanswered = append(unanswered, s.Err)
		}
	}
	return undiscovered, unanswered
}

// Held describes another server's objects of a resource in a namespace.
type Held struct {
	Resource   string         // "flunders.wardle.example.com"
	Objects    int            // number of objects
	Finalizers map[string]int // finalizer -> number of objects with it
	// Names are the first of the objects, "flunders/a".
	Names []string
}

// withUnknown adds unresponsive servers to the conditions.
func withUnknown(cs []condition, unknown []error) []condition {
	if len(unknown) == 0 {
		return cs
	}
	var texts []string
	for _, err := range unknown {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	cs[0] = condition{corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionTrue, "DiscoveryFailed",
		fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s",
			len(unknown), strings.Join(texts, ", "))}
	return cs
}

// setConditions sets status.conditions. An unchanged condition keeps its time.
func setConditions(obj map[string]any, to []condition, now time.Time) error {
	list, _, err := unstructured.NestedSlice(obj, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range to {
		entry := map[string]any{"type": string(c.kind), "status": string(c.status), "reason": c.reason,
			"message":            c.message,
			"lastTransitionTime": now.UTC().Format(time.RFC3339)}
		at := slices.IndexFunc(list, func(have any) bool {
			m, ok := have.(map[string]any)
			return ok && m["type"] == entry["type"]
		})
		if at < 0 {
			list = append(list, entry)
			continue
		}
		have := list[at].(map[string]any)
		if have["status"] == entry["status"] && have["reason"] == entry["reason"] &&
			have["message"] == entry["message"] {
			continue
		}
		if have["status"] == entry["status"] {
			entry["lastTransitionTime"] = have["lastTransitionTime"]
		}
		list[at] = entry
	}
	return unstructured.SetNestedSlice(obj, list, "status", "conditions")
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}
