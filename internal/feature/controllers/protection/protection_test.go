package protection_test

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
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	attributes = schema.GroupVersionResource{
		Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses",
	}
	groups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
)

func claim(name string) *unstructured.Unstructured {
	obj := controltest.Object("v1", "PersistentVolumeClaim", "default", name)
	obj.Object["spec"] = map[string]any{
		"accessModes": []any{"ReadWriteOnce"},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}
	return obj
}

// using returns a pod on a node ("" for none) with a volume of the given source.
func using(node, name string, source map[string]any) *unstructured.Unstructured {
	pod := controltest.PodOn(node, "default", name)
	source["name"] = "v"
	pod.Object["spec"].(map[string]any)["volumes"] = []any{source}
	return pod
}

// TestClaimsInUse checks that a deleted claim stays while a pod on a node uses it. The claim "last" is deleted after
// the others: once it is gone, the controller has checked all of them.
func TestClaimsInUse(t *testing.T) {
	c := controltest.Start(t)
	c.Create(controltest.Nodes, controltest.Object("v1", "Node", "", "one"))
	for _, name := range []string{"used", "waited-for", "free", "last"} {
		c.Create(claims, claim(name))
	}
	c.Create(controltest.Pods,
		using("one", "user", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "used"}}))
	c.Create(controltest.Pods,
		using("", "waits", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "waited-for"}}))
	owner := c.Create(controltest.Pods,
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
		c.Create(claims, obj)
	}
	for _, name := range []string{"used", "waited-for", "free", "owner-v", "owner-w", "last"} {
		c.Delete(claims, claim(name), "")
	}
	c.Until(claims, "default", "owner-v used")
	none := int64(0)
	for _, name := range []string{"user", "owner"} {
		if err := c.In(controltest.Pods, "default").Delete(t.Context(), name,
			metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
	}
	c.Until(claims, "default", "")
}

func TestVolumesInUse(t *testing.T) {
	c := controltest.Start(t)
	for _, name := range []string{"bound", "free"} {
		obj := controltest.Object("v1", "PersistentVolume", "", name)
		obj.Object["spec"] = map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "capacity": map[string]any{"storage": "1Gi"},
			"hostPath": map[string]any{"path": "/x"},
		}
		c.Create(volumes, obj)
	}
	phase := func(p string) {
		t.Helper()
		if _, err := c.In(volumes, "").Patch(t.Context(), "bound", types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"phase":%q}}`, p), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	phase("Bound")
	for _, name := range []string{"bound", "free"} {
		c.Delete(volumes, controltest.Object("v1", "PersistentVolume", "", name), "")
	}
	c.Until(volumes, "", "bound")
	phase("Released")
	c.Until(volumes, "", "")
}

func TestAttributesInUse(t *testing.T) {
	c := controltest.Start(t)
	for _, name := range []string{"fast", "free"} {
		obj := controltest.Object("storage.k8s.io/v1", "VolumeAttributesClass", "", name)
		obj.Object["driverName"], obj.Object["parameters"] = "d", map[string]any{"a": "b"}
		c.Create(attributes, obj)
	}
	fast := claim("fast")
	fast.Object["spec"].(map[string]any)["volumeAttributesClassName"] = "fast"
	c.Create(claims, fast)
	for _, name := range []string{"fast", "free"} {
		c.Delete(attributes, controltest.Object("storage.k8s.io/v1", "VolumeAttributesClass", "", name), "")
	}
	c.Until(attributes, "", "fast")
	c.Delete(claims, fast, "")
	c.Until(attributes, "", "")
}

// Objects from before the plugin get the finalizer from the controller.
func TestFinalizersOfOldClaims(t *testing.T) {
	t.Parallel()
	config := testserver.Start(t,
		func(c *bowsprit.Config) { c.Admission.Disabled = []string{"StorageObjectInUseProtection"} }).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &controltest.Cluster{T: t, Config: config, Client: client}
	c.Create(claims, claim("old"))
	c.When(claims, "default", "a finalizer", func(objects map[string]*unstructured.Unstructured) bool {
		return slices.Contains(objects["old"].GetFinalizers(), "kubernetes.io/pvc-protection")
	})
}

// TestGroupsInUse checks that a deleted pod group stays while it has a pod that has not ended, and that one without the
// finalizer is removed.
func TestGroupsInUse(t *testing.T) {
	c := controltest.Start(t, func(c *bowsprit.Config) {
		c.API.Features = map[string]bool{"GenericWorkload": true}
		c.API.RuntimeConfig = map[string]string{"scheduling.k8s.io/v1beta1": "true"}
	})
	group := func(name string) *unstructured.Unstructured {
		obj := controltest.Object("scheduling.k8s.io/v1beta1", "PodGroup", "default", name)
		obj.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"basic": map[string]any{}}}
		return obj
	}
	member := func(name, of string) {
		t.Helper()
		pod := controltest.PodOn("", "default", name)
		pod.Object["spec"].(map[string]any)["schedulingGroup"] = map[string]any{"podGroupName": of}
		c.Create(controltest.Pods, pod)
	}
	for _, name := range []string{"running", "ending", "free", "last"} {
		if got := c.Create(groups, group(name)).GetFinalizers(); len(got) != 1 {
			t.Errorf("%s has the finalizers %q", name, got)
		}
	}
	member("a", "running")
	member("b", "running")
	member("c", "ending")
	for _, name := range []string{"running", "ending", "free", "last"} {
		c.Delete(groups, group(name), "")
	}
	c.Until(groups, "default", "ending running")
	end := func(name string) {
		t.Helper()
		if _, err := c.In(controltest.Pods, "default").Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	end("a")
	end("c")
	c.Until(groups, "default", "running")
	c.Delete(controltest.Pods, controltest.PodOn("", "default", "b"), "")
	c.Until(groups, "default", "")
}

// TestGroupsOfNoPlugin checks that the controller does not add the finalizer without the admission plugin.
func TestGroupsOfNoPlugin(t *testing.T) {
	c := controltest.Start(t, func(c *bowsprit.Config) {
		c.API.Features = map[string]bool{"GenericWorkload": true}
		c.API.RuntimeConfig = map[string]string{"scheduling.k8s.io/v1beta1": "true"}
		c.Admission.Disabled = []string{"PodGroupProtection"}
	})
	for _, name := range []string{"first", "last"} {
		obj := controltest.Object("scheduling.k8s.io/v1beta1", "PodGroup", "default", name)
		obj.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"basic": map[string]any{}}}
		if name == "last" { // once it is gone, the controller has checked the first one
			obj.SetFinalizers([]string{"scheduling.k8s.io/podgroup-protection"})
		}
		c.Create(groups, obj)
	}
	c.Delete(groups, controltest.Object("", "", "default", "last"), "")
	c.Until(groups, "default", "first")
	obj, err := c.In(groups, "default").Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil || len(obj.GetFinalizers()) > 0 {
		t.Errorf("the first has the finalizers %q, %v", obj.GetFinalizers(), err)
	}
}
