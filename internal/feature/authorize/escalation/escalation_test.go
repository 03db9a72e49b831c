package escalation

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","),
		Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

func clusterRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// checker returns a Checker with four users: ann may read pods; eve may escalate the role pods in n and bind it there;
// max may do everything by a role; and bob has a binding to a missing role.
func checker() *Checker {
	e := rbac.New(slog.New(slog.DiscardHandler))
	role := func(name string, rules ...rbacv1.PolicyRule) rbac.Change {
		return rbac.Change{Name: name, Rules: rules}
	}
	bind := func(namespace, name string) rbac.Change {
		return rbac.Change{Binding: true, Namespace: namespace, Name: name, RoleRef: clusterRef(name),
			Subjects: []rbacv1.Subject{{Kind: "User", Name: name}}}
	}
	e.Apply(role("ann", rule("get,list", "", "pods")), bind("", "ann"),
		role("eve", rule("escalate", rbacv1.GroupName, "roles", "pods"), rule("bind", "*", "clusterroles", "ann")),
		bind("n", "eve"), bind("", "bob"), role("max", everything...), bind("", "max"))
	return &Checker{Authorizer: authz.Union{e}, Roles: e, Fresh: func(context.Context) error { return nil }}
}

const lacks = ` is attempting to grant RBAC permissions not currently held:` + "\n"

func TestRole(t *testing.T) {
	t.Parallel()
	c := checker()
	for _, tc := range []struct {
		user, resource, namespace, name string
		aggregates                      bool
		rules                           []rbacv1.PolicyRule
		want                            string
	}{
		{"ann", "roles", "n", "r", false, []rbacv1.PolicyRule{rule("get", "", "pods", "x")}, ""},
		{"ann", "roles", "n", "r", false, []rbacv1.PolicyRule{rule("get,delete,watch", "", "pods,secrets")},
			`roles.rbac.authorization.k8s.io "made" is forbidden: user "ann" (groups=[])` + lacks +
				`{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}` + "\n" +
				`{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete" "watch"]}`},
		{"ann", "clusterroles", "", "r", false, []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/x", "/y"}}, rule("get", "", "secrets", "a", "b"),
		}, `clusterroles.rbac.authorization.k8s.io "made" is forbidden: user "ann" (groups=[])` + lacks +
			`{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}` + "\n" +
			`{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}` + "\n" +
			`{NonResourceURLs:["/x"], Verbs:["get"]}` + "\n" + `{NonResourceURLs:["/y"], Verbs:["get"]}`},
		{"ann", "clusterroles", "", "r", true, nil, `clusterroles.rbac.authorization.k8s.io "made" is forbidden: ` +
			`must have cluster-admin privileges to use the aggregationRule`},
		{"max", "clusterroles", "", "r", true, everything, ""},
		{"eve", "roles", "n", "pods", false, everything, ""},
		{"eve", "roles", "m", "pods", false, []rbacv1.PolicyRule{rule("get", "", "pods")},
			`roles.rbac.authorization.k8s.io "made" is forbidden: user "eve" (groups=[])` + lacks +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		{"bob", "roles", "n", "", false, []rbacv1.PolicyRule{rule("get", "", "pods")},
			`roles.rbac.authorization.k8s.io "made" is forbidden: user "bob" (groups=[])` + lacks +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; ` +
				`resolution errors: [roles.rbac.authorization.k8s.io "bob" not found]`},
	} {
		r := Request{
			User: &user.DefaultInfo{Name: tc.user}, Resource: tc.resource, Namespace: tc.namespace, Name: tc.name,
		}
		compare(t, tc.user, c.Role(t.Context(), r, "made", tc.rules, tc.aggregates), tc.want)
	}
}

func compare(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

func TestBinding(t *testing.T) {
	t.Parallel()
	c := checker()
	for _, tc := range []struct {
		name, resource, namespace string
		ref                       rbacv1.RoleRef
		want                      string
	}{
		{"ann", "clusterrolebindings", "", clusterRef("ann"), ""},
		{"ann", "rolebindings", "n", clusterRef("ann"), ""},
		{"eve", "rolebindings", "n", clusterRef("ann"), ""},
		{"eve", "rolebindings", "m", clusterRef("ann"), `rolebindings.rbac.authorization.k8s.io "made" is forbidden: ` +
			`user "eve" (groups=[])` + lacks + `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`},
		{"ann", "rolebindings", "n", clusterRef("gone"), `rolebindings.rbac.authorization.k8s.io "gone" not found`},
		{"ann", "rolebindings", "n", rbacv1.RoleRef{Kind: "Role", Name: "ann"},
			`rolebindings.rbac.authorization.k8s.io "ann" not found`},
		{"ann", "clusterrolebindings", "", clusterRef("gone"),
			`clusterrolebindings.rbac.authorization.k8s.io "gone" not found`},
		{"ann", "clusterrolebindings", "", rbacv1.RoleRef{Kind: "Role", Name: "ann"}, `Namespace parameter required.`},
		{"ann", "rolebindings", "n", rbacv1.RoleRef{Kind: "Robot"}, `unsupported role reference kind: "Robot"`},
	} {
		r := Request{User: &user.DefaultInfo{Name: tc.name}, Resource: tc.resource, Namespace: tc.namespace}
		compare(t, tc.name, c.Binding(t.Context(), r, "made", tc.ref), tc.want)
	}
	master := Request{User: &user.DefaultInfo{Groups: []string{"system:masters"}}, Resource: "clusterrolebindings"}
	if err := c.Binding(t.Context(), master, "made", clusterRef("gone")); err != nil {
		t.Error(err)
	}
}

// TestGuards writes through the verbs: new and changed roles and bindings, and updates of only the garbage collector's
// fields.
func TestGuards(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}), Part())
	bob := &user.DefaultInfo{Name: "bob", Groups: []string{user.AllAuthenticated}}
	for _, kind := range []struct{ plural, kind, namespace, content string }{
		{"roles", "Role", "default", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`},
		{"clusterroles", "ClusterRole", "", `"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]`},
		{"rolebindings", "RoleBinding", "default",
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"}`},
		{"clusterrolebindings", "ClusterRoleBinding", "",
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"}`},
	} {
		gr := catalog.GroupResource{Group: rbacv1.GroupName, Resource: kind.plural}
		text := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind.kind + `","metadata":{"name":"x"` +
			map[bool]string{true: `,"namespace":"default"`}[kind.namespace != ""] + `},` + kind.content + `}`
		as := func(name user.Info) *verb.Call {
			c, err := s.Verbs.Call(gr, kind.namespace, "x", name)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		body := decode.Body{Data: []byte(text), Type: "application/json"}
		if _, err := s.Verbs.CreateFrom(t.Context(), as(bob), body, metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "RBAC permissions not currently held") {
			t.Errorf("%s: bob has made it, or %v", kind.plural, err)
		}
		if _, err := s.Verbs.Replace(t.Context(), as(bob), body, metav1.UpdateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "RBAC permissions not currently held") {
			t.Errorf("%s: bob has made it by a PUT, or %v", kind.plural, err)
		}
		if _, err := s.Verbs.CreateFrom(t.Context(), as(verb.ServerUser()), body, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		update := func(change func(meta object.Object)) error {
			_, err := s.Verbs.Update(t.Context(), as(bob), metav1.UpdateOptions{},
				func(obj object.Object) (object.Object, error) { change(object.Meta(obj)); return obj, nil })
			return err
		}
		if err := update(func(meta object.Object) { meta["finalizers"] = []any{"x.io/y"} }); err != nil {
			t.Errorf("%s: finalizers: %v", kind.plural, err)
		}
		if err := update(func(meta object.Object) { meta["labels"] = object.Object{"a": "b"} }); err == nil {
			t.Errorf("%s: bob has changed it", kind.plural)
		}
	}
}
