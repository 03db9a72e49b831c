package workloads

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// These verbs act on the first object of a kind with a label app.

func (on target) lose(ctx context.Context, _ string) error {
	p, err := on.first()
	if err != nil {
		return err
	}
	on.name = p.GetName()
	if err := on.api().Delete(ctx, on.name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		now := on.get()
		return now == nil || now.GetUID() != p.GetUID(), nil
	})
}

func (on target) fail(ctx context.Context, _ string) error {
	p, err := on.first()
	if err != nil {
		return err
	}
	on.name = p.GetName()
	return on.patchStatus(ctx, "{phase: Failed, reason: Evicted}")
}

// first returns the first object of a kind with a label app. It prefers objects with generated names.
func (on target) first() (found *unstructured.Unstructured, err error) {
	for _, o := range on.list(on.resource, on.namespace) {
		if on.name != "-" && o.GetLabels()["app"] != on.name {
			continue
		}
		if found == nil || found.GetGenerateName() == "" && o.GetGenerateName() != "" {
			found = o
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, errors.New("there is none")
}

// patchFirst sets KEY=VALUE in a map of the first object of a label.
func (on target) patchFirst(ctx context.Context, in, field, desc string) error {
	o, err := on.first()
	if err != nil {
		return err
	}
	key, value, _ := strings.Cut(desc, "=")
	on.name = o.GetName()
	return on.patch(ctx, map[string]any{in: map[string]any{field: map[string]any{key: value}}})
}

func (on target) evict(ctx context.Context, rest string) error {
	if on.name == "-" {
		p, err := on.first()
		if err != nil {
			return err
		}
		on.name = p.GetName()
	}
	_, err := on.api().Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata": map[string]any{"name": on.name, "namespace": on.namespace},
	}}, metav1.CreateOptions{}, "eviction")
	if rest == "429" {
		if !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("it is not refused: %w", err)
		}
		return nil
	}
	return err
}

// retemplate recreates an object under its name, with another label in its pod template.
func (on target) retemplate(ctx context.Context, label string) error {
	o, err := on.first()
	if err != nil {
		return err
	}
	on.name = o.GetName()
	if err := on.api().Delete(ctx, on.name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	o = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": o.Object["spec"],
		"metadata": map[string]any{"name": on.name},
	}}
	path := []string{"spec", "template", "metadata", "labels", "a"}
	if err := unstructured.SetNestedField(o.Object, label, path...); err != nil {
		return err
	}
	made, err := on.api().Create(ctx, o, metav1.CreateOptions{})
	return on.written(ctx, made, err)
}
