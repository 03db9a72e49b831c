package vessels

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func testCreate(c *client) {
	obj := c.made(c.vessels().Create(c.ctx, vessel("ark", "Noah"), metav1.CreateOptions{}))
	c.is(obj, "Sloop", "spec", "kind") // by the schema
	c.is(obj, 1, "spec", "masts")      // by the function
	c.is(obj, 1, "metadata", "generation")
	if obj.GetUID() == "" || obj.GetCreationTimestamp().Unix() <= 0 || len(obj.GetManagedFields()) != 1 {
		c.Errorf("the metadata is not complete: %v", obj)
	}
	again := c.made(c.vessels().Get(c.ctx, "ark", metav1.GetOptions{}))
	if again.GetResourceVersion() != obj.GetResourceVersion() {
		c.Errorf("read at %s, written at %s", again.GetResourceVersion(), obj.GetResourceVersion())
	}
	_, err := c.vessels().Create(c.ctx, vessel("ark", "Noah"), metav1.CreateOptions{})
	c.refused(err, apierrors.IsAlreadyExists, `vessels.extension.example.com "ark" already exists`)
	unnamed := vessel("", "Noah")
	unnamed.SetGenerateName("boat-")
	if obj := c.made(c.vessels().Create(c.ctx, unnamed, metav1.CreateOptions{})); len(obj.GetName()) != 10 {
		c.Errorf("the generated name is %q", obj.GetName())
	}
	h := c.made(c.harbours().Create(c.ctx, c.harbour("a", "DE"), metav1.CreateOptions{}))
	c.is(h, "DE", "spec", "country")
}

func testValidation(c *client) {
	for name, one := range map[string]struct {
		change func(spec map[string]any)
		want   string
	}{
		"by the schema":   {func(s map[string]any) { s["masts"] = int64(8) }, "spec.masts: Invalid value: 8"},
		"required":        {func(s map[string]any) { delete(s, "captain") }, "spec.captain: Required value"},
		"enumeration":     {func(s map[string]any) { s["kind"] = "Raft" }, `spec.kind: Unsupported value: "Raft"`},
		"by the function": {func(s map[string]any) { s["captain"] = "Ahab" }, "spec.captain: Forbidden: not again"},
	} {
		obj := vessel("wrong", "Noah")
		one.change(obj.Object["spec"].(map[string]any))
		_, err := c.vessels().Create(c.ctx, obj, metav1.CreateOptions{})
		if err == nil || !apierrors.IsInvalid(err) || !contains(err.Error(), one.want) {
			c.Errorf("%s: %v", name, err)
		}
	}
	unknown := vessel("wrong", "Noah")
	unknown.Object["spec"].(map[string]any)["sails"] = int64(3)
	_, err := c.vessels().Create(c.ctx, unknown, metav1.CreateOptions{FieldValidation: "Strict"})
	c.refused(err, apierrors.IsBadRequest, `unknown field "spec.sails"`)
	h := c.harbour("thirteen", "DE")
	h.Object["spec"].(map[string]any)["berths"] = int64(13)
	_, err = c.harbours().Create(c.ctx, h, metav1.CreateOptions{})
	c.refused(err, apierrors.IsInvalid, "no thirteen")
}

func testUpdate(c *client) {
	obj := c.made(c.vessels().Create(c.ctx, vessel("jolly", "Hook"), metav1.CreateOptions{}))
	stale := obj.DeepCopy()
	_ = unstructured.SetNestedField(obj.Object, "Barge", "spec", "kind")
	obj = c.made(c.vessels().Update(c.ctx, obj, metav1.UpdateOptions{}))
	c.is(obj, 2, "metadata", "generation")
	_, err := c.vessels().Update(c.ctx, stale, metav1.UpdateOptions{})
	c.refused(err, apierrors.IsConflict, "the object has been modified")
	_ = unstructured.SetNestedField(obj.Object, "Pan", "spec", "captain")
	_, err = c.vessels().Update(c.ctx, obj, metav1.UpdateOptions{})
	c.refused(err, apierrors.IsInvalid, `spec.captain: Invalid value: "Pan": Hook stays`)
}

func testPatch(c *client) {
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	obj := c.made(c.vessels().Patch(c.ctx, "a", types.MergePatchType, []byte(`{"spec":{"masts":3}}`),
		metav1.PatchOptions{}))
	c.is(obj, 3, "spec", "masts")
	obj = c.made(c.vessels().Patch(c.ctx, "a", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/spec/masts","value":3},{"op":"add","path":"/spec/crew","value":[{"name":"x"}]}]`),
		metav1.PatchOptions{}))
	c.is(obj, "[map[name:x]]", "spec", "crew")
	_, err := c.vessels().Patch(c.ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	c.refused(err, apierrors.IsUnsupportedMediaType)
	_, err = c.vessels().Patch(c.ctx, "a", types.MergePatchType, []byte(`{"spec":{"captain":"Ahab"}}`),
		metav1.PatchOptions{})
	c.refused(err, apierrors.IsInvalid, "not again")
}

func testApply(c *client) {
	apply := func(manager, body string, force bool) (*unstructured.Unstructured, error) {
		return c.vessels().Patch(c.ctx, "a", types.ApplyPatchType, []byte(
			`{"apiVersion":"extension.example.com/v1","kind":"Vessel","metadata":{"name":"a"},"spec":`+body+`}`),
			metav1.PatchOptions{FieldManager: manager, Force: &force})
	}
	c.made(apply("one", `{"captain":"Cook","crew":[{"name":"x","rank":"mate"}]}`, false))
	obj := c.made(apply("two", `{"captain":"Cook","crew":[{"name":"y"}]}`, false))
	c.is(obj, "[map[name:x rank:mate] map[name:y]]", "spec", "crew") // a map by name
	_, err := apply("two", `{"captain":"Bligh"}`, false)
	c.refused(err, apierrors.IsConflict, `conflict with "one": .spec.captain`)
	obj = c.made(apply("two", `{"captain":"Bligh"}`, true))
	c.is(obj, "Bligh", "spec", "captain")
	c.is(obj, "[map[name:x rank:mate]]", "spec", "crew")
}

func testStatus(c *client) {
	obj := vessel("a", "Cook")
	_ = unstructured.SetNestedField(obj.Object, "Hamburg", "status", "port")
	obj = c.made(c.vessels().Create(c.ctx, obj, metav1.CreateOptions{}))
	c.is(obj, nil, "status", "port")
	_ = unstructured.SetNestedField(obj.Object, "Bergen", "status", "port")
	_ = unstructured.SetNestedField(obj.Object, "Ketch", "spec", "kind")
	obj = c.made(c.vessels().UpdateStatus(c.ctx, obj, metav1.UpdateOptions{}))
	c.is(obj, "Bergen", "status", "port")
	c.is(obj, "Sloop", "spec", "kind")
	c.is(obj, 1, "metadata", "generation")
	obj = c.made(c.vessels().Patch(c.ctx, "a", types.MergePatchType, []byte(`{"status":{"port":"Riga"}}`),
		metav1.PatchOptions{}))
	c.is(obj, "Bergen", "status", "port")
}

func testScale(c *client) {
	h := c.made(c.harbours().Create(c.ctx, c.harbour("a", "DE"), metav1.CreateOptions{}))
	scale := c.made(c.harbours().Patch(c.ctx, h.GetName(), types.MergePatchType, []byte(`{"spec":{"replicas":5}}`),
		metav1.PatchOptions{}, "scale"))
	if scale.GetKind() != "Scale" {
		c.Errorf("the scale is %v", scale)
	}
	c.is(c.made(c.harbours().Get(c.ctx, h.GetName(), metav1.GetOptions{})), 5, "spec", "berths")
}

func testDryRun(c *client) {
	dry := []string{metav1.DryRunAll}
	obj := c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{DryRun: dry}))
	c.is(obj, 1, "spec", "masts")
	_, err := c.vessels().Get(c.ctx, "a", metav1.GetOptions{})
	c.refused(err, apierrors.IsNotFound)
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	if err := c.vessels().Delete(c.ctx, "a", metav1.DeleteOptions{DryRun: dry}); err != nil {
		c.Error(err)
	}
	c.made(c.vessels().Get(c.ctx, "a", metav1.GetOptions{}))
}

func testDeletion(c *client) {
	obj := vessel("a", "Cook")
	obj.SetFinalizers([]string{"example.com/anchor"})
	c.made(c.vessels().Create(c.ctx, obj, metav1.CreateOptions{}))
	if err := c.vessels().Delete(c.ctx, "a", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	obj = c.made(c.vessels().Get(c.ctx, "a", metav1.GetOptions{}))
	if obj.GetDeletionTimestamp() == nil {
		c.Error("the deletion has not begun")
	}
	c.made(c.vessels().Patch(c.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}))
	_, err := c.vessels().Get(c.ctx, "a", metav1.GetOptions{})
	c.refused(err, apierrors.IsNotFound, `vessels.extension.example.com "a" not found`)
	err = c.vessels().Delete(c.ctx, "a", metav1.DeleteOptions{})
	c.refused(err, apierrors.IsNotFound)
	c.made(c.vessels().Create(c.ctx, vessel("b", "Cook"), metav1.CreateOptions{}))
	wrong := types.UID("other")
	err = c.vessels().Delete(c.ctx, "b", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	c.refused(err, apierrors.IsConflict)
	if err := c.vessels().DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.Error(err)
	}
	list, err := c.vessels().List(c.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		c.Errorf("%d are left: %v", len(list.Items), err)
	}
}
