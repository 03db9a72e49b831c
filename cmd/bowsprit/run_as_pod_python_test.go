//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestRunPython runs the operator of examples/python as the pod of its Deployment, to the end of its main job.
func TestRunPython(t *testing.T) {
	t.Parallel()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("python3 does not run: %v", err)
	}
	server := testserver.Start(t, allowLocalPods)
	if err := server.Install(t.Context(), "../../examples/python/operator.yaml"); err != nil {
		t.Fatal(err)
	}
	port := freeport.Port(t)
	cmd := command(t, "run", "--as-pod=deployment/greeter", "--namespace=greeter", "--kubeconfig="+server.Kubeconfig(),
		"--mounts=paths", fmt.Sprintf("--port=8080=%d", port), "--route=always", "--",
		strings.TrimSpace(string(python)), "../../examples/python/operator.py", "--host=127.0.0.1", fmt.Sprintf("--port=%d", port))
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	objects, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	greetings := objects.Resource(schema.GroupVersionResource{
		Group: "example.com", Version: "v1", Resource: "greetings",
	}).Namespace("greeter")
	if _, err := greetings.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Greeting",
		"metadata": map[string]any{"name": "world"}, "spec": map[string]any{"name": "World"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "greeted World\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the operator prints %q (%v): %s", line, err, log.String())
	}
	greeting, err := greetings.Get(t.Context(), "world", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(greeting.Object, "status", "message"); got != "Hello, World!" {
		t.Errorf("the status is %q", got)
	}
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	text, err := client.CoreV1().ConfigMaps("greeter").Get(t.Context(), "world", metav1.GetOptions{})
	if err != nil || text.Data["text"] != "Hello, World!" {
		t.Errorf("%v, %v", text, err)
	}
	logged, err := client.CoreV1().Pods("greeter").GetLogs("greeter-as-pod", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(logged), "greeted World\n") {
		t.Errorf("kubectl logs: %q, %v", logged, err)
	}
}
