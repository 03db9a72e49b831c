package quota_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	service = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func pod(t *testing.T, name, resources string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`","namespace":"default"},
		"spec":{"containers":[{"name":"c","image":"i","resources":`+resources+`}]}}`)
}

// refused returns why the creation of an object fails, "" if it succeeds.
func (c *cluster) refused(resource schema.GroupVersionResource, obj *unstructured.Unstructured) string {
	c.Helper()
	if _, err := c.In(resource, "default").Create(c.Context(), obj, metav1.CreateOptions{}); err != nil {
		return err.Error()
	}
	return ""
}

func (c *cluster) patch(resource schema.GroupVersionResource, name, body string, subresource ...string) string {
	c.Helper()
	_, err := c.In(resource, "default").Patch(c.Context(), name, types.StrategicMergePatchType, []byte(body),
		metav1.PatchOptions{}, subresource...)
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestAmounts(t *testing.T) {
	c := start(t)
	c.limit("cpu", map[string]any{"requests.cpu": "2", "limits.memory": "1Gi", "pods": "5", "requests.x.io/gpu": "3"})
	c.used("cpu", "requests.cpu=0 limits.memory=0 pods=0 requests.x.io/gpu=0")
	check := func(name, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s\nwant: %s", name, got, want)
		}
	}
	check("nothing said", c.refused(pods, pod(t, "none", `{}`)),
		`pods "none" is forbidden: failed quota: cpu: must specify limits.memory for: c; requests.cpu for: c`)
	const half = `{"requests":{"cpu":"500m"},"limits":{"memory":"256Mi","x.io/gpu":"2"}}`
	check("half", c.refused(pods, pod(t, "a", half)), "")
	c.used("cpu", "requests.cpu=500m limits.memory=256Mi pods=1 requests.x.io/gpu=2")
	check("too many devices", c.refused(pods, pod(t, "b", half)),
		`pods "b" is forbidden: exceeded quota: cpu, requested: requests.x.io/gpu=2, used: requests.x.io/gpu=2, limited: requests.x.io/gpu=3`)
	check("too much", c.refused(pods, pod(t, "b", `{"requests":{"cpu":"1600m"},"limits":{"memory":"1Gi"}}`)),
		`pods "b" is forbidden: exceeded quota: cpu, requested: limits.memory=1Gi,requests.cpu=1600m, used: limits.memory=256Mi,requests.cpu=500m, limited: limits.memory=1Gi,requests.cpu=2`)
	check("resized", c.patch(pods, "a", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}}`,
		"resize"),
		`pods "a" is forbidden: exceeded quota: cpu, requested: requests.cpu=2500m, used: requests.cpu=500m, limited: requests.cpu=2`)
	check("resized less", c.patch(pods, "a",
		`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`, "resize"), "")
	c.used("cpu", "requests.cpu=1 limits.memory=256Mi pods=1 requests.x.io/gpu=2")
	check("ended", c.patch(pods, "a", `{"status":{"phase":"Succeeded"}}`, "status"), "")
	c.used("cpu", "requests.cpu=0 limits.memory=0 pods=0 requests.x.io/gpu=0")
}

func TestScopes(t *testing.T) {
	c := start(t)
	c.Create(quotas, parse(t, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"short","namespace":"default"},
		"spec":{"hard":{"pods":"1"},"scopes":["Terminating","BestEffort"]}}`))
	c.Create(quotas, parse(t, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"class","namespace":"default"},
		"spec":{"hard":{"pods":"0"},"scopeSelector":{"matchExpressions":[
			{"scopeName":"PriorityClass","operator":"In","values":["system-node-critical"]}]}}}`))
	c.used("short", "pods=0")
	c.used("class", "pods=0")
	if why := c.refused(pods, pod(t, "a", `{}`)); why != "" {
		t.Error(why)
	}
	if why := c.refused(pods, pod(t, "b", `{}`)); why != "" {
		t.Error(why)
	}
	// A deadline brings a pod into the scope.
	if why := c.patch(pods, "a", `{"spec":{"activeDeadlineSeconds":100}}`); why != "" {
		t.Error(why)
	}
	c.used("short", "pods=1")
	const want = `pods "b" is forbidden: exceeded quota: short, requested: pods=1, used: pods=1, limited: pods=1`
	if why := c.patch(pods, "b", `{"spec":{"activeDeadlineSeconds":100}}`); why != want {
		t.Errorf("%s, want %s", why, want)
	}
	critical := pod(t, "c", `{}`)
	critical.Object["spec"].(map[string]any)["priorityClassName"] = "system-node-critical"
	const full = `pods "c" is forbidden: exceeded quota: class, requested: pods=1, used: pods=0, limited: pods=0`
	if why := c.refused(pods, critical); why != full {
		t.Errorf("%s, want %s", why, full)
	}
}

func TestStorageAndServices(t *testing.T) {
	c := start(t)
	c.limit("q", map[string]any{
		"requests.storage": "10Gi", "gold.storageclass.storage.k8s.io/requests.storage": "3Gi",
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims": "2", "services.nodeports": "2",
	})
	const none = "gold.storageclass.storage.k8s.io/persistentvolumeclaims=0 " +
		"gold.storageclass.storage.k8s.io/requests.storage=0 requests.storage=0"
	c.used("q", none+" services.nodeports=0")
	claim := func(name, class, size string) *unstructured.Unstructured {
		return parse(t, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"`+name+`"},
			"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"`+class+`","resources":{"requests":{"storage":"`+
			size+`"}}}}`)
	}
	if why := c.refused(claims, claim("a", "gold", "2Gi")); why != "" {
		t.Error(why)
	}
	const want = `persistentvolumeclaims "b" is forbidden: exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi, used: gold.storageclass.storage.k8s.io/requests.storage=2Gi, limited: gold.storageclass.storage.k8s.io/requests.storage=3Gi`
	if why := c.refused(claims, claim("b", "gold", "2Gi")); why != want {
		t.Errorf("%s, want %s", why, want)
	}
	if why := c.refused(claims, claim("b", "lead", "2Gi")); why != "" {
		t.Error(why)
	}
	web := parse(t, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[
		{"name":"a","port":1},{"name":"b","port":2},{"name":"c","port":3}]}}`)
	if why := c.refused(service, web); why != "" {
		t.Error(why)
	}
	const ports = `services "web" is forbidden: exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=0, limited: services.nodeports=2`
	if why := c.patch(service, "web", `{"spec":{"type":"NodePort"}}`); why != ports {
		t.Errorf("%s, want %s", why, ports)
	}
	c.used("q", "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 "+
		"gold.storageclass.storage.k8s.io/requests.storage=2Gi requests.storage=4Gi services.nodeports=0")
	c.Delete(claims, controltest.Object("v1", "PersistentVolumeClaim", "default", "b"), "")
}
