package rbac

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","),
		Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

func clusterRef(name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: "ClusterRole", Name: name} }

func subjects(kindsAndNames ...string) (list []rbacv1.Subject) {
	for _, s := range kindsAndNames {
		kind, name, _ := strings.Cut(s, " ")
		namespace, account, namespaced := strings.Cut(name, "/")
		if !namespaced {
			namespace, account = "", name
		}
		list = append(list, rbacv1.Subject{Kind: kind, Namespace: namespace, Name: account})
	}
	return list
}

func example() *Evaluator {
	e := New(slog.New(slog.DiscardHandler))
	e.Apply(
		Change{Name: "reader", Rules: []rbacv1.PolicyRule{rule("get,list", "", "pods,*/scale")}},
		Change{Name: "logs", Rules: []rbacv1.PolicyRule{rule("*", "*", "pods/log")}},
		Change{Name: "urls", Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz/*", "/version"},
		}}},
		Change{Namespace: "n", Name: "one", Rules: []rbacv1.PolicyRule{rule("update", "apps", "deployments", "web")}},
		Change{Binding: true, Name: "readers", RoleRef: clusterRef("reader"),
			Subjects: subjects("Group dev", "User bob")},
		Change{Binding: true, Name: "urls", RoleRef: clusterRef("urls"), Subjects: subjects("User *", "User bob")},
		Change{Binding: true, Name: "ghost", RoleRef: clusterRef("gone"), Subjects: subjects("User eve", "Group dev")},
		Change{Binding: true, Namespace: "n", Name: "one", RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "one"},
			Subjects: subjects("ServiceAccount robot", "ServiceAccount m/robot")},
		Change{Binding: true, Namespace: "n", Name: "logs", RoleRef: clusterRef("logs"),
			Subjects: subjects("User eve")},
		Change{Binding: true, Namespace: "n", Name: "none", RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "none"},
			Subjects: subjects("User eve")},
	)
	return e
}

func resource(verb, group, name, sub, namespace, object string) *request.Info {
	return &request.Info{
		IsResource: true, Verb: verb, Group: group, Version: "v1", Resource: name, Subresource: sub,
		Namespace: namespace, Name: object,
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	e := example()
	bob := &user.DefaultInfo{Name: "bob"}
	eve := &user.DefaultInfo{Name: "eve"}
	dev := &user.DefaultInfo{Name: "bob", Groups: []string{"x", "dev"}}
	robot := &user.DefaultInfo{Name: "system:serviceaccount:n:robot"}
	other := &user.DefaultInfo{Name: "system:serviceaccount:m:robot"}
	const gone = `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`
	const both = `RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, ` +
		`role.rbac.authorization.k8s.io "none" not found]`
	for _, c := range []struct {
		user *user.DefaultInfo
		info *request.Info
		want string // "yes" or "no", and the reason
	}{
		{bob, resource("get", "", "pods", "", "n", "p"),
			`yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "bob"`},
		{dev, resource("list", "", "pods", "", "", ""),
			`yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev"`},
		{bob, resource("get", "", "pods", "log", "n", "p"), "no "},
		{bob, resource("get", "", "replicationcontrollers", "scale", "n", "p"),
			`yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "bob"`},
		{bob, resource("get", "apps", "deployments", "scale", "n", "p"), "no "},
		{bob, resource("get", "", "pods", "", "", ""),
			`yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "bob"`},
		{robot, resource("update", "apps", "deployments", "", "n", "web"),
			`yes RBAC: allowed by RoleBinding "one/n" of Role "one" to ServiceAccount "robot/n"`},
		{other, resource("update", "apps", "deployments", "", "n", "web"),
			`yes RBAC: allowed by RoleBinding "one/n" of Role "one" to ServiceAccount "robot/m"`},
		{robot, resource("update", "apps", "deployments", "", "n", "db"), "no "},
		{robot, resource("update", "apps", "deployments", "", "m", "web"), "no "},
		{robot, resource("update", "apps", "deployments", "", "", "web"), "no "},
		{eve, resource("get", "", "pods", "log", "n", "p"),
			`yes RBAC: allowed by RoleBinding "logs/n" of ClusterRole "logs" to User "eve"`},
		{eve, resource("get", "", "pods", "", "", ""), "no " + gone},
		{eve, resource("get", "", "pods", "", "n", ""), "no " + both},
		{&user.DefaultInfo{Name: "eve", Groups: []string{"dev"}}, resource("watch", "", "pods", "", "", ""),
			"no " + gone},
		{bob, &request.Info{Verb: "get", Path: "/healthz/etcd"},
			`yes RBAC: allowed by ClusterRoleBinding "urls" of ClusterRole "urls" to User "bob"`},
		{bob, &request.Info{Verb: "get", Path: "/healthz"}, "no "},
		{bob, &request.Info{Verb: "post", Path: "/version"}, "no "},
		{&user.DefaultInfo{Name: "dev"}, resource("get", "", "pods", "", "n", "p"), "no "},
	} {
		d, err := e.Authorize(t.Context(), c.user, c.info)
		got := map[bool]string{true: "yes ", false: "no "}[d.Allowed()] + d.Reason
		if err != nil || got != c.want {
			t.Errorf("%s: %s %s/%s/%s %s: %s, %v; want %s", c.user.Name, c.info.Verb, c.info.Namespace, c.info.Resource,
				c.info.Subresource, c.info.Path, got, err, c.want)
		}
	}
}

// TestApply checks that removed grants end, and that an earlier policy stays unchanged.
func TestApply(t *testing.T) {
	t.Parallel()
	e := example()
	bob := &user.DefaultInfo{Name: "bob"}
	get := resource("get", "", "pods", "", "n", "p")
	allowed := func() bool {
		d, _ := e.Authorize(t.Context(), bob, get)
		return d.Allowed()
	}
	readers := Change{Binding: true, Name: "readers", RoleRef: clusterRef("reader"), Subjects: subjects("User bob")}
	before := e.now()
	for i, step := range []struct {
		change Change
		want   bool
	}{
		{Change{Name: "reader", Deleted: true}, false},
		{Change{Name: "reader", Rules: []rbacv1.PolicyRule{rule("*", "*", "*")}}, true},
		{Change{Binding: true, Name: "readers", Deleted: true}, false},
		{Change{Binding: true, Name: "readers", Deleted: true}, false},
		{readers, true},
		{Change{Binding: true, Name: "readers", RoleRef: clusterRef("reader"), Subjects: subjects("User eve")}, false},
		{readers, true},
		{Change{Name: "reader", Rules: []rbacv1.PolicyRule{rule("list", "", "pods")}}, false},
	} {
		e.Apply(step.change)
		if got := allowed(); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	q := query{policy: before, user: bob, info: get}
	if !q.allowedIn("") {
		t.Error("a policy has changed after it was made")
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	e := example()
	eve := &user.DefaultInfo{Name: "eve", Groups: []string{"dev", "dev"}}
	rules, missing := e.Held(eve, "n")
	if len(rules) != 2 || rules[0].Resources[0] != "pods" || rules[1].Resources[0] != "pods/log" ||
		!slices.Equal(missing, []rbacv1.RoleRef{clusterRef("gone"), {Kind: "Role", Name: "none"}}) {
		t.Errorf("%v %v", rules, missing)
	}
	all, err := e.Rules(t.Context(), &user.DefaultInfo{Name: "bob"}, "n")
	if err != nil || len(all.Resources) != 1 || len(all.NonResources) != 1 || all.Incomplete {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := e.Rules(t.Context(), eve, ""); err == nil ||
		err.Error() != `clusterrole.rbac.authorization.k8s.io "gone" not found` {
		t.Errorf("%v", err)
	}
	if _, ok := e.RoleRules(rbacv1.RoleRef{Kind: "Role", Name: "one"}, ""); ok {
		t.Error("a role without a namespace")
	}
	if rules, ok := e.RoleRules(rbacv1.RoleRef{Kind: "Role", Name: "one"}, "n"); !ok || len(rules) != 1 {
		t.Errorf("%v %v", rules, ok)
	}
}

// many returns an evaluator with n bindings in n/10 namespaces; one of them concerns the user in namespace ns7.
func many(n int) *Evaluator {
	e := New(slog.New(slog.DiscardHandler))
	var changes []Change
	for i := range n / 10 {
		namespace := fmt.Sprintf("ns%d", i)
		for j := range 10 {
			name := fmt.Sprintf("role-%d", j)
			changes = append(changes,
				Change{Namespace: namespace, Name: name, Rules: []rbacv1.PolicyRule{
					rule("get,list,watch", "", "pods,services"), rule("update", "apps", "deployments"),
				}},
				Change{Binding: true, Namespace: namespace, Name: name,
					RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}, Subjects: subjects(
						fmt.Sprintf("User user-%d-%d", i, j), "ServiceAccount default",
						fmt.Sprintf("Group team-%d", i))})
		}
	}
	e.Apply(changes...)
	return e
}

// TestNoAllocation checks that a decision allocates nothing, whether it allows or not.
func TestNoAllocation(t *testing.T) {
	e := many(1000)
	u := &user.DefaultInfo{Name: "user-7-7", Groups: []string{"system:authenticated", "team-9"}}
	for _, info := range []*request.Info{
		resource("update", "apps", "deployments", "", "ns7", "web"),
		resource("delete", "apps", "deployments", "", "ns7", "web"),
		resource("get", "", "pods", "log", "ns7", "web"),
		{Verb: "get", Path: "/healthz"},
	} {
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Authorize(t.Context(), u, info) }); n != 0 {
			t.Errorf("%s %s: %v allocations", info.Verb, info.Resource, n)
		}
	}
}

func BenchmarkAuthorize(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		e := many(n)
		u := &user.DefaultInfo{Name: "user-7-7", Groups: []string{"system:authenticated", "team-9"}}
		for _, verb := range []string{"update", "delete"} {
			b.Run(fmt.Sprintf("bindings=%d/%s", n, verb), func(b *testing.B) {
				info := resource(verb, "apps", "deployments", "", "ns7", "web")
				b.ReportAllocs()
				for b.Loop() {
					_, _ = e.Authorize(b.Context(), u, info)
				}
			})
		}
	}
}

// BenchmarkApply adds one binding to many.
func BenchmarkApply(b *testing.B) {
	e := many(10_000)
	b.ReportAllocs()
	for b.Loop() {
		e.Apply(Change{Binding: true, Namespace: "ns7", Name: "more", RoleRef: clusterRef("x"),
			Subjects: subjects("User more", "Group team-7")})
	}
}

// TestMemory checks that 10,000 bindings, each with its own role and three subjects, take less than 20 MB.
func TestMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	e := many(10_000)
	used := heap() - before
	runtime.KeepAlive(e)
	t.Logf("%d KB", used>>10)
	if used > 20<<20 {
		t.Errorf("10,000 bindings take %d bytes", used)
	}
}
