package control_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	attributes = schema.GroupVersionResource{
		Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses",
	}
)

func claim(name string) *unstructured.Unstructured {
	obj := object("v1", "PersistentVolumeClaim", "default", name)
	obj.Object["spec"] = map[string]any{
		"accessModes": []any{"ReadWriteOnce"},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}
	return obj
}

// using returns a pod on a node ("" for none) with a volume of the given source.
func using(node, name string, source map[string]any) *unstructured.Unstructured {
	pod := podOn(node, "default", name)
	source["name"] = "v"
	pod.Object["spec"].(map[string]any)["volumes"] = []any{source}
	return pod
}

// A claim that is deleted stays while a pod on a node has it. The claim "last" is deleted after the others: the
// controller has looked at those when it is gone.
func TestClaimsInUse(t *testing.T) {
	c := start(t)
	c.create(nodes, object("v1", "Node", "", "one"))
	for _, name := range []string{"used", "waited-for", "free", "last"} {
		c.create(claims, claim(name))
	}
	c.create(pods, using("one", "user", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "used"}}))
	c.create(pods,
		using("", "waits", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "waited-for"}}))
	owner := c.create(pods,
		using("one", "owner",
			map[string]any{
				"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": claim("x").Object["spec"]}},
			}))
	mine, foreign := claim("owner-v"), claim("owner-w")
	for _, obj := range []*unstructured.Unstructured{mine, foreign} {
		yes := true
		obj.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: "owner", UID: owner.GetUID(), Controller: &yes},
		})
		c.create(claims, obj)
	}
	for _, name := range []string{"used", "waited-for", "free", "owner-v", "owner-w", "last"} {
		c.delete(claims, claim(name), "")
	}
	c.until(claims, "default", "owner-v used")
	none := int64(0)
	for _, name := range []string{"user", "owner"} {
		if err := c.in(pods, "default").Delete(t.Context(), name,
			metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
	}
	c.until(claims, "default", "")
}

func TestVolumesInUse(t *testing.T) {
	c := start(t)
	for _, name := range []string{"bound", "free"} {
		obj := object("v1", "PersistentVolume", "", name)
		obj.Object["spec"] = map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "capacity": map[string]any{"storage": "1Gi"},
			"hostPath": map[string]any{"path": "/x"},
		}
		c.create(volumes, obj)
	}
	phase := func(p string) {
		t.Helper()
		if _, err := c.in(volumes, "").Patch(t.Context(), "bound", types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"phase":%q}}`, p), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	phase("Bound")
	for _, name := range []string{"bound", "free"} {
		c.delete(volumes, object("v1", "PersistentVolume", "", name), "")
	}
	c.until(volumes, "", "bound")
	phase("Released")
	c.until(volumes, "", "")
}

func TestAttributesInUse(t *testing.T) {
	c := start(t)
	for _, name := range []string{"fast", "free"} {
		obj := object("storage.k8s.io/v1", "VolumeAttributesClass", "", name)
		obj.Object["driverName"], obj.Object["parameters"] = "d", map[string]any{"a": "b"}
		c.create(attributes, obj)
	}
	fast := claim("fast")
	fast.Object["spec"].(map[string]any)["volumeAttributesClassName"] = "fast"
	c.create(claims, fast)
	for _, name := range []string{"fast", "free"} {
		c.delete(attributes, object("storage.k8s.io/v1", "VolumeAttributesClass", "", name), "")
	}
	c.until(attributes, "", "fast")
	c.delete(claims, fast, "")
	c.until(attributes, "", "")
}

// Objects from before the plugin get the finalizer from the controller.
func TestFinalizersOfOldClaims(t *testing.T) {
	t.Parallel()
	config := testserver.Start(t,
		func(c *bowsprit.Config) { c.DisableAdmissionPlugins = []string{"StorageObjectInUseProtection"} }).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t, config, client}
	c.create(claims, claim("old"))
	c.when(claims, "default", "a finalizer", func(objects map[string]*unstructured.Unstructured) bool {
		return slices.Contains(objects["old"].GetFinalizers(), "kubernetes.io/pvc-protection")
	})
}
