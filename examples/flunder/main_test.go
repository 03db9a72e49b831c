package main

import (
	"bytes"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestLines checks that the server has at most 80 lines: sample-apiserver has 1,672, and 8,188 generated ones.
func TestLines(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 80 {
		t.Errorf("main.go has %d lines", lines)
	}
}

func TestFlunders(t *testing.T) {
	t.Parallel()
	kinds, err := extension.In(kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	s := testserver.Start(t, func(c *bowsprit.Config) { c.Extensions = append(c.Extensions, kinds) })
	d, err := dynamic.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	flunders := d.Resource(schema.GroupVersionResource{
		Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders",
	}).Namespace("default")
	flunder := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": map[string]any{"name": "one"},
		"spec": map[string]any{"reference": "two"},
	}}
	made, err := flunders.Create(t.Context(), flunder, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if kind, _, _ := unstructured.NestedString(made.Object, "spec", "referenceType"); kind != "Flunder" {
		t.Errorf("the default is %q", kind)
	}
	if size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size"); size != 10 {
		t.Errorf("the size is %d", size)
	}
	flunder.SetName("two")
	if _, err := flunders.Create(t.Context(), flunder, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a flunder that refers to itself: %v", err)
	}
}
