package core

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestClaimsOfStatus updates the status of a pod without the lists about claims, and with empty ones. An update of the
// pod itself changes neither.
func TestClaimsOfStatus(t *testing.T) {
	t.Parallel()
	strategy := podKind().Strategy
	read := func(text string) object.Object {
		var obj object.Object
		if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
			t.Fatal(err)
		}
		if _, err := strategy.Decode(obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	const start = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"
	const claims = "{resourceClaimStatuses: [{name: x, resourceClaimName: claim}], extendedResourceClaimStatus: {resourceClaimName: z}}"
	list := []any{map[string]any{"name": "x", "resourceClaimName": "claim"}}
	for _, c := range []struct {
		status, subresource string
		want                any
	}{
		{"{phase: Running}", "status", list},
		{"{resourceClaimStatuses: null}", "status", list},
		{"{resourceClaimStatuses: []}", "status", nil},
		{"{resourceClaimStatuses: [], nodeAllocatableResourceClaimStatuses: []}", "status", nil},
		{"{resourceClaimStatuses: []}", "", list},
		{"{resourceClaimStatuses: []}", "ephemeralcontainers", list},
		{"{resourceClaimStatuses: []}", "resize", list},
	} {
		old, obj := read(start+"status: "+claims), read(start+"status: "+c.status)
		strategy.PrepareUpdate(obj, old, c.subresource, catalog.Env{})
		status := object.Map(obj, "status")
		if got := status["resourceClaimStatuses"]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s through %q: %v, want %v", c.status, c.subresource, got, c.want)
		}
		if _, ok := status["nodeAllocatableResourceClaimStatuses"]; ok || status["extendedResourceClaimStatus"] == nil {
			t.Errorf("%s through %q: %v", c.status, c.subresource, status)
		}
	}
	obj := read(start + "status: {resourceClaimStatuses: []}")
	strategy.PrepareCreate(obj, catalog.Env{})
	if _, ok := object.Map(obj, "status")["resourceClaimStatuses"]; ok {
		t.Errorf("a new pod has the empty list: %v", obj)
	}
}
