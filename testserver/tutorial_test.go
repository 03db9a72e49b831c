package testserver_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/testserver"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              keep: {type: integer, minimum: 1, default: 3}
          status:
            type: object
            properties:
              phase: {type: string, enum: [Pending, Done]}
`

var (
	crds = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	backups = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "backups"}
)

// reconcile is the operator: whoever wants a backup gets one.
func reconcile(ctx context.Context, client dynamic.Interface, namespace, name string) error {
	done := []byte(`{"status":{"phase":"Done"}}`)
	_, err := client.Resource(backups).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, done, metav1.PatchOptions{}, "status")
	return err
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestBackup(t *testing.T) {
	t.Parallel() // with all others: they share nothing
	server := testserver.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(crds).Create(ctx, parse(t, definition), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mine := client.Resource(backups).Namespace("default") // served since the definition was created
	made, err := mine.Create(ctx, parse(t, `
apiVersion: example.com/v1
kind: Backup
metadata: {name: nightly}
spec: {}
`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if keep, _, _ := unstructured.NestedInt64(made.Object, "spec", "keep"); keep != 3 {
		t.Errorf("keep is %d, want the default 3", keep)
	}
	if err := reconcile(ctx, client, "default", "nightly"); err != nil {
		t.Fatal(err)
	}
	seen, err := mine.Get(ctx, "nightly", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if phase, _, _ := unstructured.NestedString(seen.Object, "status", "phase"); phase != "Done" {
		t.Errorf("the phase is %q, want Done", phase)
	}
}
