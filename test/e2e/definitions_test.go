package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// corpus is the directory with definitions of real projects, outside of the repository.
const corpus = "../../../shared/crds"

var customResourceDefinitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// TestRealDefinitions installs the definitions of cert-manager, the Prometheus operator, Argo CD and the Gateway API,
// and uses objects of them.
func TestRealDefinitions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "real", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Skipf("no definitions in %s", corpus)
	}
	client := dynamic.NewForConfigOrDie(startServer(t, "--ephemeral").config(t))
	installed := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			if bytes.Contains(document, []byte("\nkind: CustomResourceDefinition")) {
				install(t, client, document)
				installed++
			}
		}
	}
	t.Logf("%d definitions from %d files", installed, len(files))

	samples, err := filepath.Glob("testdata/objects/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("no sample objects: %v", err)
	}
	for _, file := range samples {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			work(t, client, content)
		})
	}
}

// TestManyDefinitions installs the definitions of a large provider.
func TestManyDefinitions(t *testing.T) {
	file, err := os.Open(filepath.Join(corpus, "upjet-aws.tar.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no definitions in %s", corpus)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	limit := 60
	if os.Getenv("E2E_UPJET") == "1" {
		limit = 1 << 20
	}
	client := dynamic.NewForConfigOrDie(startServer(t, "--ephemeral").config(t))
	began, installed := time.Now(), 0
	for archive := tar.NewReader(plain); installed < limit; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(header.Name) != ".yaml" {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		install(t, client, content)
		installed++
	}
	t.Logf("%d definitions in %v", installed, time.Since(began).Round(time.Millisecond))
}

// install creates a definition and uses its kind with the next request.
func install(t *testing.T, client dynamic.Interface, document []byte) {
	t.Helper()
	definition := decode(t, document)
	ctx := bounded(t, commandLimit)
	if _, err := client.Resource(customResourceDefinitions).Create(ctx, definition,
		metav1.CreateOptions{}); err != nil {
		t.Errorf("%s: %v", definition.GetName(), err)
		return
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		kind := schema.GroupVersionResource{Group: group, Version: version["name"].(string), Resource: plural}
		if _, err := client.Resource(kind).List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("%v is not served: %v", kind, err)
		}
	}
}

// work creates, lists, changes and deletes an object.
func work(t *testing.T, client dynamic.Interface, document []byte) {
	t.Helper()
	ctx := bounded(t, commandLimit)
	object := decode(t, document)
	plural := map[string]string{"Prometheus": "prometheuses"}[object.GetKind()]
	if plural == "" {
		plural = strings.ToLower(object.GetKind()) + "s"
	}
	resource := client.Resource(object.GroupVersionKind().GroupVersion().WithResource(plural)).Namespace("default")
	created, err := resource.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetUID() != created.GetUID() {
		t.Fatalf("list: %v; got %v", err, list)
	}
	created.SetLabels(map[string]string{"step": "updated"})
	updated, err := resource.Update(ctx, created, metav1.UpdateOptions{})
	if err != nil || updated.GetLabels()["step"] != "updated" {
		t.Fatalf("update: %v; got %v", err, updated)
	}
	patched, err := resource.Patch(ctx, object.GetName(), types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"step":"patched"}}}`), metav1.PatchOptions{})
	if err != nil || patched.GetLabels()["step"] != "patched" {
		t.Fatalf("patch: %v; got %v", err, patched)
	}
	if err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if list, err := resource.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("list after the deletion: %v; got %v", err, list)
	}
}

func decode(t *testing.T, document []byte) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	body, err := yaml.YAMLToJSON(document)
	if err == nil {
		err = object.UnmarshalJSON(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}
