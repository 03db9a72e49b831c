package testserver_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	crontabs = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
)

// A test starts a server and uses any client of Kubernetes with it.
func ExampleStart() {
	var t *testing.T // the test's own
	server := testserver.Start(t)
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(definitions).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("a fresh server has definitions %v, error %v; want none", list.Items, err)
	}
}

// TestServersAreApart starts several servers at once; each serves a definition and an object that the others lack.
func TestServersAreApart(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t)
			useServer(t, server.RESTConfig(), name)
		})
	}
}

// useServer defines a kind, creates one object of it, and fails if another object exists.
func useServer(t testing.TB, config *rest.Config, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(definitions).Create(t.Context(), cronTabDefinition(),
		metav1.CreateOptions{}); err != nil {
		t.Fatalf("definition: %v", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"cronSpec": "* * * * */5"},
	}}
	if _, err := client.Resource(crontabs).Namespace("default").Create(t.Context(), object,
		metav1.CreateOptions{}); err != nil {
		t.Fatalf("object: %v", err)
	}
	list, err := client.Resource(crontabs).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	if len(list.Items) != 1 || list.Items[0].GetName() != name {
		t.Errorf("got %d objects, want %q alone", len(list.Items), name)
	}
}

func cronTabDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "crontabs.stable.example.com"},
		"spec": map[string]any{
			"group": "stable.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					},
				}},
			}},
		},
	}}
}

// TestNothingIsLeft compares goroutines and files before and after a server.
func TestNothingIsLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	use := func() {
		server := testserver.Start(t)
		config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		transport := rest.CopyConfig(config)
		useServer(t, transport, "left")
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if _, err := os.Stat(filepath.Dir(server.Kubeconfig())); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the data directory is still there: %v", err)
		}
	}
	use() // libraries start some goroutines once per process
	before := ours()
	use()
	// A goroutine that has finished its work may still be listed. Let others run until it disappears, or until the
	// deadline.
	deadline := time.Now().Add(time.Minute)
	for after := ours(); len(after) > len(before); after = ours() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after:\n%s", len(before), len(after), strings.Join(after, "\n\n"))
		}
		runtime.Gosched()
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// ours returns the stacks of the goroutines that run code of this module or of etcd.
func ours() []string {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		ofTest := strings.Contains(stack, "testserver_test.")
		if !ofTest &&
			(strings.Contains(stack, "github.com/bowsprit/bowsprit") || strings.Contains(stack, "go.etcd.io/")) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := testserver.Start(t, func(c *bowsprit.Config) { c.DataDir = dir })
	if want := filepath.Join(dir, "kubeconfig"); server.Kubeconfig() != want {
		t.Errorf("Kubeconfig() = %q, want %q", server.Kubeconfig(), want)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	// The directory and its contents belong to the caller.
	again := testserver.Start(t, func(c *bowsprit.Config) { c.DataDir = dir })
	if again.URL() == "" {
		t.Error("no URL after a second start")
	}
}
