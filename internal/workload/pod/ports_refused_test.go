package pod_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestProxy checks that a proxy to a simulated pod, or to a service of such pods, fails at once with connection
// refused: with few pods, and with so many that an index finds them.
func TestProxy(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("nodes=1"))
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	pod := controltest.Object("v1", "Pod", "default", "web")
	pod.SetLabels(map[string]string{"app": "web"})
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
	c.Create(controltest.Pods, pod)
	service := controltest.Object("v1", "Service", "default", "web")
	service.Object["spec"] = map[string]any{
		"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}},
	}
	c.Create(schema.GroupVersionResource{Version: "v1", Resource: "services"}, service)
	endpoints := schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}
	c.When(endpoints, "default", "the pod behind it", func(all map[string]*unstructured.Unstructured) bool {
		if all["web"] == nil {
			return false
		}
		subsets, _, _ := unstructured.NestedSlice(all["web"].Object, "subsets")
		return len(subsets) == 1 && subsets[0].(map[string]any)["addresses"] != nil
	})
	const pods, services = "pods/web:80/proxy/", "services/web:80/proxy/"
	for i, path := range []string{pods, services, pods, services, pods} {
		if i == 2 {
			for n := range 200 {
				other := controltest.Object("v1", "Pod", "default", fmt.Sprint("other-", n))
				other.Object["spec"] = pod.DeepCopy().Object["spec"]
				other.Object["spec"].(map[string]any)["schedulerName"] = "nobody"
				c.Create(controltest.Pods, other)
			}
		}
		err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/" + path).
			Do(t.Context()).Error()
		if !apierrors.IsServiceUnavailable(err) ||
			!strings.Contains(err.Error(), "error trying to reach service: dial tcp 10.24") ||
			!strings.Contains(err.Error(), ":80: connect: connection refused") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
