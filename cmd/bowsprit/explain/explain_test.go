package explain

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/feature/review/why"
)

// TestParseRefusal checks that the text of a refusal yields the refused request.
func TestParseRefusal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Error from server (Forbidden): pods "web" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "dev"`:                                                                    `alice: get pods/log "web" in the namespace dev`,
		`deployments.apps is forbidden: User "system:serviceaccount:a:b" cannot list resource "deployments" in API group "apps" at the cluster scope`:                                                                   `system:serviceaccount:a:b: list deployments.apps in the whole cluster`,
		`error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io is forbidden: User "alice" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "shop"`: `alice: create rolebindings.rbac.authorization.k8s.io in the namespace shop`,
		`secrets "other" is forbidden: User "system:node:one" cannot get resource "secrets" in API group "" in the namespace "default": no relationship found between node 'one' and this object`:                       `system:node:one: get secrets "other" in the namespace default`,
		`forbidden: User "system:anonymous" cannot get path "/metrics"`:                                             `system:anonymous: get /metrics`,
		`pods is forbidden: User "a\"b &lt;c&gt;" cannot list resource "pods" in API group "" at the cluster scope`: `a"b <c>: list pods in the whole cluster`,
		`pods "p" is forbidden: violates PodSecurity`:                                                               "",
		`get pods`: "",
	} {
		got := ""
		if w := parseRefusal(text); w != nil {
			got = w.user + ": " + why.Describe(w.info())
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestExplanationText checks that suggested commands are quoted and name the missing permissions.
func TestExplanationText(t *testing.T) {
	t.Parallel()
	w := &deniedRequest{user: "Jane O'Neill", resource: &authorizationv1.ResourceAttributes{
		Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "dev", Name: "web",
	}}
	e := why.Explain(&why.Policy{Roles: []why.Role{{
		Namespace: "dev", Name: "scaler", Rules: []rbacv1.PolicyRule{why.Smallest(w.info())},
	}}}, &userInfo{w.user}, w.info())
	got := (&answer{Explanation: e}).text(w)
	for _, want := range []string{
		"Jane O'Neill may not get deployments.apps/scale \"web\" in the namespace dev: the user has no similar rule.",
		`  Role dev/scaler
    kubectl create rolebinding jane-o-neill-scaler --role=scaler --user='Jane O'\''Neill' --namespace=dev
`, `
    kubectl create role get-deployments-scale --verb=get --resource=deployments.apps/scale --resource-name=web --namespace=dev
    kubectl create rolebinding jane-o-neill-get-deployments-scale --role=get-deployments-scale --user='Jane O'\''Neill' --namespace=dev
`, "add the user's groups with --as-group",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s\n%s", want, got)
		}
	}
	got = (&answer{Denied: true, Explanation: &why.Explanation{Summary: "refused for good"}}).text(w)
	if got != "refused for good.\n" {
		t.Errorf("of what no role allows: %s", got)
	}
	got = (&answer{Explanation: &why.Explanation{Summary: "no"}}).text(w)
	if got != "no.\n\nOnly bindings that name user Jane O'Neill count here: add the user's groups with --as-group.\n" {
		t.Errorf("an explanation without a role: %s", got)
	}
	if got := (&answer{}).text(w); !strings.Contains(got, "the server gives no explanation") {
		t.Errorf("of another server: %s", got)
	}
}

type userInfo struct{ name string }

func (u *userInfo) GetName() string               { return u.name }
func (u *userInfo) GetUID() string                { return "" }
func (u *userInfo) GetGroups() []string           { return nil }
func (u *userInfo) GetExtra() map[string][]string { return nil }

// TestAllGroups checks that the groups that follow from a user's name are included.
func TestAllGroups(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"alice":                        "[dev system:authenticated]",
		"system:anonymous":             "[dev system:unauthenticated]",
		"system:serviceaccount:a:b":    "[dev system:serviceaccounts system:serviceaccounts:a system:authenticated]",
		"system:serviceaccount:broken": "[dev system:authenticated]",
	} {
		if got := fmt.Sprint((&deniedRequest{user: user, groups: []string{"dev"}}).allGroups()); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}

// TestSetBy checks that the manager of a finalizer is the manager with the finalizer among its fields.
func TestSetBy(t *testing.T) {
	t.Parallel()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
		{Manager: "operator", FieldsV1: metav1.NewFieldsV1(
			`{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}}}}`,
		)},
	})
	if got := setBy(obj, "example.com/x"); got != "; operator set it" {
		t.Errorf("got %q", got)
	}
	if got := setBy(obj, "example.com/y"); got != "" {
		t.Errorf("of another finalizer: %q", got)
	}
}
