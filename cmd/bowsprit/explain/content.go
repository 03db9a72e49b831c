package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mostShown is how many objects are named of a kind.
const mostShown = 10

// namespaceContent lists the remaining objects in a namespace and the messages of its controller.
func (s *search) namespaceContent(ctx context.Context, b *strings.Builder, ns *unstructured.Unstructured) {
	if list, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers"); len(list) > 0 {
		fmt.Fprintf(b, "\nspec.finalizers has %s: the namespace controller removes kubernetes when the namespace is "+
			"empty.\n", strings.Join(list, ", "))
	}
	conditions, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["status"] == "True" {
			fmt.Fprintf(b, "%v: %v\n", m["type"], m["message"])
		}
	}
	var hidden []string
	for _, r := range s.all() {
		if !r.Namespaced || r.Resource == "events" {
			continue
		}
		list, err := s.objects.Resource(r.GroupVersionResource).Namespace(ns.GetName()).List(ctx, metav1.ListOptions{})
		if err != nil {
			hidden = append(hidden, r.Resource)
			continue
		}
		s.remaining(b, r.GroupVersionResource, list.Items)
	}
	if len(hidden) > 0 {
		fmt.Fprintf(b, "\nNot checked, because they cannot be listed: %s.\n", strings.Join(hidden, ", "))
	}
}

// instances lists the remaining objects of a kind when its definition is being deleted.
func (s *search) instances(ctx context.Context, b *strings.Builder, definition *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if version, _ := m["name"].(string); m["served"] == true {
			r := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
			list, err := s.objects.Resource(r).List(ctx, metav1.ListOptions{})
			if err != nil {
				fmt.Fprintf(b, "\nIts objects cannot be listed: %s\n", err)
				return
			}
			s.remaining(b, r, list.Items)
			return
		}
	}
}

// dependents lists the objects that name obj as an owner and block its deletion.
func (s *search) dependents(ctx context.Context, b *strings.Builder, obj *unstructured.Unstructured) {
	for _, r := range s.all() {
		if obj.GetNamespace() != "" && !r.Namespaced {
			continue
		}
		list, err := s.objects.Resource(r.GroupVersionResource).Namespace(obj.GetNamespace()).List(ctx,
			metav1.ListOptions{})
		if err != nil {
			continue
		}
		s.remaining(b, r.GroupVersionResource, slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
			return !slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
				return ref.UID == obj.GetUID() && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
			})
		}))
	}
}

// remaining names the remaining objects and the reasons why they remain.
func (s *search) remaining(b *strings.Builder, r schema.GroupVersionResource, items []unstructured.Unstructured) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d %s remain:\n", len(items), strings.TrimSuffix(r.Resource+"."+r.Group, "."))
	for i := range items {
		o := &items[i]
		if i == mostShown {
			fmt.Fprintf(b, "  and %d more\n", len(items)-mostShown)
			break
		}
		state := "is not being deleted"
		if o.GetDeletionTimestamp() != nil {
			state = "is being deleted"
		}
		if f := o.GetFinalizers(); len(f) > 0 {
			state += ", kept by " + strings.Join(f, ", ")
		}
		fmt.Fprintf(b, "  %s %s\n", o.GetName(), state)
	}
}

// pod reports that a pod without finalizers waits for the kubelet of its node.
func (s *search) pod(b *strings.Builder, obj *unstructured.Unstructured) {
	node, _, _ := unstructured.NestedString(obj.Object, "spec", "nodeName")
	if node == "" || len(obj.GetFinalizers()) > 0 {
		return
	}
	if left := obj.GetDeletionTimestamp().Sub(s.now); left > 0 {
		fmt.Fprintf(b, "\nIts containers have %s left to stop.\n", left.Round(time.Second))
	}
	fmt.Fprintf(b, "\nIt is removed when the kubelet of node %s reports that its containers have stopped. If the node is lost "+
		"for good: kubectl delete pod %s --namespace=%s --force\n", node, obj.GetName(), obj.GetNamespace())
}

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}
