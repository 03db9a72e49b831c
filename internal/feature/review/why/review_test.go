package why_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/feature/review/why"
	"github.com/bowsprit/bowsprit/testserver"
)

// client posts reviews as several users.
type client struct {
	*testing.T
	config *rest.Config
	admin  kubernetes.Interface
}

func start(t *testing.T) *client {
	t.Helper()
	t.Parallel()
	config := testserver.Start(t).RESTConfig()
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, config, admin}
}

// grants grants a user a role with one rule, in a namespace or cluster-wide.
func (a *client) grants(user, namespace, role string, rule rbacv1.PolicyRule) {
	a.Helper()
	rbac, meta := a.admin.RbacV1(), metav1.ObjectMeta{Name: role, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}
	var err error
	if namespace == "" {
		_, err = rbac.ClusterRoles().Create(a.Context(),
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		if err == nil {
			_, err = rbac.ClusterRoleBindings().Create(a.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects,
			}, metav1.CreateOptions{})
		}
	} else {
		_, err = rbac.Roles(namespace).Create(a.Context(),
			&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		if err == nil {
			_, err = rbac.RoleBindings(namespace).Create(a.Context(), &rbacv1.RoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: role}, Subjects: subjects,
			}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		a.Fatal(err)
	}
}

// explain posts a review as a user, nil for the administrator, and returns its status as text.
func (a *client) explain(user, path, body string) string {
	a.Helper()
	config := rest.CopyConfig(a.config)
	config.Impersonate.UserName = user
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		a.Fatal(err)
	}
	raw, err := client.AuthorizationV1().RESTClient().Post().RequestURI("/apis/authorization.k8s.io/v1/"+path).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body([]byte(`{` + body + `}`)).Do(a.Context()).Raw()
	if err != nil {
		a.Fatal(err)
	}
	var review struct{ Status json.RawMessage }
	if err := json.Unmarshal(raw, &review); err != nil {
		a.Fatal(err)
	}
	return string(review.Status)
}

const (
	deletes   = `"resourceAttributes":{"verb":"delete","resource":"pods","namespace":"default"}`
	ofBob     = `"spec":{"user":"bob",` + deletes + `}`
	ofOneself = `"spec":{` + deletes + `}`
)

// TestNothingIsTold checks that an explanation names only roles and bindings that the caller may list.
func TestNothingIsTold(t *testing.T) {
	a := start(t)
	words := func(text string) []string { return strings.Split(text, ",") }
	reads := rbacv1.PolicyRule{APIGroups: words(""), Resources: words("pods"), Verbs: words("get")}
	a.grants("bob", "default", "near-default", reads)
	a.grants("bob", "", "near-cluster", reads)
	a.grants("nobody", "default", "would-default", rbacv1.PolicyRule{
		APIGroups: words(""), Resources: words("pods"), Verbs: words("delete"),
	})
	a.grants("nobody", "kube-public", "elsewhere", reads)
	list := func(resources string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: words(rbacv1.GroupName), Resources: words(resources), Verbs: words("list"),
		}
	}
	review := rbacv1.PolicyRule{
		APIGroups: words("authorization.k8s.io"), Resources: words("subjectaccessreviews,localsubjectaccessreviews"),
		Verbs: words("create"),
	}
	for _, user := range []string{"none", "roles", "both", "cluster"} {
		a.grants(user, "", "reviews-"+user, review)
	}
	a.grants("roles", "default", "list-roles", list("roles"))
	a.grants("both", "default", "list-both", list("roles,rolebindings"))
	a.grants("cluster", "", "list-cluster", list("clusterroles,clusterrolebindings"))
	secrets := []string{"near-default", "near-cluster", "would-default", "cluster-admin"}
	for _, test := range []struct {
		user   string
		leaked string // the names above that the explanation contains
	}{
		{"none", ""},
		{"roles", "would-default"},
		{"both", "near-default,would-default"},
		{"cluster", "near-cluster,cluster-admin"},
		{"", "near-default,near-cluster,would-default,cluster-admin"},
	} {
		for path, body := range map[string]string{
			"subjectaccessreviews":                         ofBob,
			"namespaces/default/localsubjectaccessreviews": `"metadata":{"namespace":"default"},` + ofBob,
		} {
			status := a.explain(test.user, path+"?explain=true", body)
			for _, name := range secrets {
				if want := slices.Contains(words(test.leaked), name); strings.Contains(status, name) != want {
					t.Errorf("%s is told of %s: %v, want %v\n%s", test.user, name, !want, want, status)
				}
			}
			var s struct{ Explanation *why.Explanation }
			if err := json.Unmarshal([]byte(status), &s); err != nil || s.Explanation == nil {
				t.Fatalf("no explanation: %v %s", err, status)
			}
			if len(s.Explanation.Smallest.Verbs) != 1 || (len(s.Explanation.Hidden) == 0) != (test.user == "") {
				t.Errorf("%s: smallest %v, hidden %v", test.user, s.Explanation.Smallest, s.Explanation.Hidden)
			}
		}
	}
	status := a.explain("bob", "selfsubjectaccessreviews?explain=true", ofOneself)
	if strings.Contains(status, "near-") || !strings.Contains(status, `"smallest"`) {
		t.Errorf("bob learns his roles: %s", status)
	}
}

// TestNotRequested checks that the status is Kubernetes' if no explanation is requested, or if there is nothing to
// explain.
func TestNotRequested(t *testing.T) {
	a := start(t)
	for _, path := range []string{"subjectaccessreviews", "subjectaccessreviews?explain=false"} {
		if status := a.explain("", path, ofBob); status != `{"allowed":false}` {
			t.Errorf("%s: %s", path, status)
		}
	}
	status := a.explain("", "subjectaccessreviews?explain=true",
		`"spec":{"user":"bob","groups":["system:masters"],`+deletes+`}`)
	if status != `{"allowed":true}` {
		t.Errorf("what is allowed: %s", status)
	}
}
