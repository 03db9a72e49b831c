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
func (s *search) namespaceContent(ctx context.Context, found *stuck, ns *unstructured.Unstructured) {
	if list, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers"); len(list) > 0 {
		found.add("spec.finalizers has %s: the namespace controller removes kubernetes when the namespace is empty.",
			strings.Join(list, ", "))
	}
	var reports []string
	conditions, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["status"] == "True" {
			reports = append(reports, fmt.Sprintf("%v: %v", m["type"], m["message"]))
		}
	}
	if len(reports) > 0 {
		found.add("The namespace controller reports:").Details = reports
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
		s.remaining(found, r.GroupVersionResource, list.Items)
	}
	if len(hidden) > 0 {
		found.add("Not checked, because they cannot be listed: %s.", strings.Join(hidden, ", "))
	}
}

// instances lists the remaining objects of a kind when its definition is being deleted.
func (s *search) instances(ctx context.Context, found *stuck, definition *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if version, _ := m["name"].(string); m["served"] == true {
			r := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
			list, err := s.objects.Resource(r).List(ctx, metav1.ListOptions{})
			if err != nil {
				found.add("Its objects cannot be listed: %s", err)
				return
			}
			s.remaining(found, r, list.Items)
			return
		}
	}
}

// dependents lists the objects that name obj as an owner and block its deletion.
func (s *search) dependents(ctx context.Context, found *stuck, obj *unstructured.Unstructured) {
	for _, r := range s.all() {
		if obj.GetNamespace() != "" && !r.Namespaced {
			continue
		}
		list, err := s.objects.Resource(r.GroupVersionResource).Namespace(obj.GetNamespace()).List(ctx,
			metav1.ListOptions{})
		if err != nil {
			continue
		}
		blocking := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
			return !slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
				return ref.UID == obj.GetUID() && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
			})
		})
		s.remaining(found, r.GroupVersionResource, blocking)
	}
}

// remaining names the remaining objects and the reasons why they remain.
func (s *search) remaining(found *stuck, r schema.GroupVersionResource, items []unstructured.Unstructured) {
	if len(items) == 0 {
		return
	}
	remain := found.add("%d %s remain:", len(items), strings.TrimSuffix(r.Resource+"."+r.Group, "."))
	for i := range items {
		o := &items[i]
		if i == mostShown {
			remain.detail("and %d more", len(items)-mostShown)
			break
		}
		state := "is not being deleted"
		if o.GetDeletionTimestamp() != nil {
			state = "is being deleted"
		}
		if f := o.GetFinalizers(); len(f) > 0 {
			state += ", kept by " + strings.Join(f, ", ")
		}
		remain.detail("%s %s", o.GetName(), state)
	}
}

// pod reports that a pod without finalizers waits for the kubelet of its node.
func (s *search) pod(found *stuck, obj *unstructured.Unstructured) {
	node, _, _ := unstructured.NestedString(obj.Object, "spec", "nodeName")
	if node == "" || len(obj.GetFinalizers()) > 0 {
		return
	}
	if left := obj.GetDeletionTimestamp().Sub(s.now); left > 0 {
		found.add("Its containers have %s left to stop.", left.Round(time.Second))
	}
	found.add("It is removed when the kubelet of node %s reports that its containers have stopped. If the node is lost "+
		"for good: kubectl delete pod %s --namespace=%s --force", node, obj.GetName(), obj.GetNamespace())
}

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}
