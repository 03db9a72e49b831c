package certificates

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func TestSigningRequestSaysWhoAsks(t *testing.T) {
	t.Parallel()
	obj := catalog.Object{
		"spec":   catalog.Object{"signerName": "example.com/x", "username": "somebody", "groups": []any{"ops"}},
		"status": catalog.Object{"conditions": []any{catalog.Object{"type": "Approved"}}},
	}
	prepareSigningRequestCreate(obj,
		catalog.Env{
			User: &user.DefaultInfo{Name: "jane", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		})
	want := catalog.Object{
		"spec": catalog.Object{
			"signerName": "example.com/x", "username": "jane", "groups": []any{"g"},
			"extra": catalog.Object{"k": []any{"v"}},
		},
		"status": catalog.Object{},
	}
	if !reflect.DeepEqual(obj, want) {
		t.Errorf("%v, want %v", obj, want)
	}
}

func TestSigningRequestIsDecidedByApproval(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const stamp, earlier = "2026-01-02T03:04:05Z", "2025-01-01T00:00:00Z"
	condition := func(name, message, updated, changed string) catalog.Object {
		c := catalog.Object{"type": name, "status": "True", "message": message}
		if updated != "" {
			c["lastUpdateTime"], c["lastTransitionTime"] = updated, changed
		}
		return c
	}
	object := func(signer, certificate string, conditions ...any) catalog.Object {
		return catalog.Object{
			"spec":   catalog.Object{"signerName": signer},
			"status": catalog.Object{"certificate": certificate, "conditions": conditions},
		}
	}
	for _, c := range []struct {
		name, subresource string
		old, obj, want    catalog.Object
	}{
		{"an update changes neither", "", object("a", "x"), object("b", "y", condition("Approved", "", "", "")),
			object("a", "x")},
		{"approval changes conditions alone", "approval", object("a", "x"),
			object("b", "y", condition("Approved", "m", "", "")),
			object("a", "x", condition("Approved", "m", stamp, stamp))},
		{"status leaves a decision as it is", "status", object("a", "x", condition("Denied", "m", earlier, earlier)),
			object("b", "y", condition("Failed", "f", "", ""), condition("Denied", "another", "", "")),
			object("a", "y", condition("Failed", "f", stamp, stamp), condition("Denied", "m", earlier, earlier))},
		{"a condition with the same status keeps its transition", "status",
			object("a", "x", condition("Failed", "m", earlier, earlier)),
			object("a", "x", condition("Failed", "n", "", "")),
			object("a", "x", condition("Failed", "n", stamp, earlier))},
	} {
		prepareSigningRequestUpdate(c.obj, c.old, c.subresource, catalog.Env{Now: now})
		if !reflect.DeepEqual(c.obj, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.obj, c.want)
		}
	}
}
