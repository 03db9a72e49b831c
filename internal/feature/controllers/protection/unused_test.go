package protection_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// bind creates a bound claim.
func bind(c *controltest.Cluster, claim *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	c.Create(claims, claim)
	return patchStatus(c, claims, claim.GetName(), `{"phase":"Bound"}`)
}

func patchStatus(
	c *controltest.Cluster, of schema.GroupVersionResource, name, status string,
) *unstructured.Unstructured {
	c.Helper()
	obj, err := c.In(of, "default").Patch(c.Context(), name, types.MergePatchType, []byte(`{"status":`+status+`}`),
		metav1.PatchOptions{}, "status")
	if err != nil {
		c.Fatal(err)
	}
	return obj
}

// usage returns the condition Unused of a claim, nil without one.
func usage(claim *unstructured.Unstructured) map[string]any {
	list, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, v := range list {
		if c, _ := v.(map[string]any); c["type"] == "Unused" {
			return c
		}
	}
	return nil
}

// untilUsage waits until the condition Unused of a claim has a status.
func untilUsage(c *controltest.Cluster, name, status string) (found map[string]any) {
	c.Helper()
	c.When(claims, "default", "Unused="+status+" of "+name, func(objects map[string]*unstructured.Unstructured) bool {
		if objects[name] != nil {
			found = usage(objects[name])
		}
		return found["status"] == status
	})
	return found
}

func withClaim(name string) map[string]any {
	return map[string]any{"persistentVolumeClaim": map[string]any{"claimName": name}}
}

// TestUnusedSince checks the condition of a claim, and that the controller only writes it when its status changes: the
// second user of the claim changes nothing.
func TestUnusedSince(t *testing.T) {
	clock := testserver.NewClock()
	c := controltest.Start(t, testserver.WithClock(clock))
	c.Create(controltest.Nodes, controltest.Object("v1", "Node", "", "one"))
	made := bind(c, claim("data"))
	w, err := c.In(claims, "default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: made.GetResourceVersion(), FieldSelector: "metadata.name=data"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	before := untilUsage(c, "data", "True")
	if before["reason"] != "NoPodsUsingPVC" || before["message"] != "No pods are currently referencing this PVC" {
		t.Errorf("before the first pod: %v", before)
	}
	clock.Advance(time.Hour)
	first := c.Create(controltest.Pods, using("one", "first", withClaim("data")))
	during := untilUsage(c, "data", "False")
	if during["reason"] != "PodUsingPVC" || during["message"] != "A pod is currently referencing this PVC" {
		t.Errorf("with a pod: %v", during)
	}
	c.Create(controltest.Pods, using("", "second", withClaim("data")))
	// A deleted pod uses the claim until its containers have stopped.
	patchStatus(c, controltest.Pods, "first", `{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":true,
		"restartCount":0,"state":{"running":{"startedAt":"2030-01-01T00:00:00Z"}}}]}`)
	c.Delete(controltest.Pods, first, "")
	c.Delete(controltest.Pods, controltest.PodOn("", "default", "second"), "")
	c.Until(controltest.Pods, "default", "first")
	clock.Advance(time.Hour)
	patchStatus(c, controltest.Pods, "first", `{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,
		"restartCount":0,"state":{"terminated":{"exitCode":0}}}]}`)
	after := untilUsage(c, "data", "True")
	if !older(t, before, during, time.Hour) || !older(t, during, after, time.Hour) {
		t.Errorf("transitions: %v, %v, %v", before, during, after)
	}
	var seen []any
	for ev := range w.ResultChan() {
		claim, _ := ev.Object.(*unstructured.Unstructured)
		condition := usage(claim)
		if seen = append(seen, condition["status"]); condition["lastTransitionTime"] == after["lastTransitionTime"] {
			break
		}
	}
	if !slices.Equal(seen, []any{"True", "False", "True"}) {
		t.Errorf("the statuses were %v", seen)
	}
}

// older reports whether the transition of a is at least d before the transition of b.
func older(t *testing.T, a, b map[string]any, d time.Duration) bool {
	t.Helper()
	var at [2]time.Time
	for i, condition := range []map[string]any{a, b} {
		text, _ := condition["lastTransitionTime"].(string)
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		at[i] = parsed
	}
	return at[1].Sub(at[0]) >= d
}

// TestUnusedWithOtherConditions checks that other conditions stay, that the claim of an ephemeral volume counts its own
// pod alone, and that a pod that has ended uses nothing.
func TestUnusedWithOtherConditions(t *testing.T) {
	c := controltest.Start(t)
	c.Create(controltest.Pods, using("", "owner", map[string]any{
		"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": claim("x").Object["spec"]}},
	}))
	c.Create(claims, claim("owner-v"))
	patchStatus(c, claims, "owner-v", `{"phase":"Bound","conditions":[{"type":"Resizing","status":"True"}]}`)
	untilUsage(c, "owner-v", "True")
	obj, err := c.In(claims, "default").Get(t.Context(), "owner-v", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); len(list) != 2 ||
		list[0].(map[string]any)["type"] != "Resizing" {
		t.Errorf("conditions: %v", list)
	}
	c.Create(controltest.Pods, using("", "user", withClaim("owner-v")))
	untilUsage(c, "owner-v", "False")
	patchStatus(c, controltest.Pods, "user", `{"phase":"Failed"}`)
	untilUsage(c, "owner-v", "True")
}

// TestUnusedOff checks that claims have no condition without the gate, which 1.36 has off. Once the claim "last" is
// gone, the controller has checked the other one.
func TestUnusedOff(t *testing.T) {
	for name, configure := range map[string]func(*bowsprit.Config){
		"by the gate": func(c *bowsprit.Config) {
			c.API.Features = map[string]bool{"PersistentVolumeClaimUnusedSinceTime": false}
		},
		"by emulation": func(c *bowsprit.Config) { c.Emulation.Version = []string{"1.36"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := controltest.Start(t, configure)
			bind(c, claim("first"))
			bind(c, claim("last"))
			c.Delete(claims, claim("last"), "")
			c.Until(claims, "default", "first")
			obj, err := c.In(claims, "default").Get(t.Context(), "first", metav1.GetOptions{})
			if err != nil || usage(obj) != nil {
				t.Errorf("%v, %v", usage(obj), err)
			}
		})
	}
}

// TestUnusedAfterStart checks that a start corrects the condition of a claim with users that went unobserved.
func TestUnusedAfterStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(configure ...func(*bowsprit.Config)) (*testserver.Server, *controltest.Cluster) {
		t.Helper()
		server := testserver.Start(t,
			append(configure, func(c *bowsprit.Config) { c.Ephemeral, c.DataDir = false, dir })...)
		client, err := dynamic.NewForConfig(server.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		return server, &controltest.Cluster{T: t, Config: server.RESTConfig(), Client: client}
	}
	server, c := start(func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"*", "-persistentvolumeclaim-protection-controller"}
	})
	bind(c, claim("data"))
	patchStatus(c, claims, "data", `{"conditions":[{"type":"Unused","status":"False"}]}`)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, c = start()
	untilUsage(c, "data", "True")
}
