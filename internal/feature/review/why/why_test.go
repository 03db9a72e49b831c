package why

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// list splits a text at commas; "" means no words, and - the empty word.
func list(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, ",")
	for i := range all {
		if all[i] == "-" {
			all[i] = ""
		}
	}
	return all
}

// rule is verbs, groups, resources, and names.
func rule(verbs, groups, resources, names string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: list(verbs), APIGroups: list(groups), Resources: list(resources), ResourceNames: list(names),
	}
}

func urls(verbs, urls string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: list(verbs), NonResourceURLs: list(urls)}
}

func about(verb, group, resource, namespace, name string) *request.Info {
	info := &request.Info{IsResource: true, Verb: verb, Group: group, Namespace: namespace, Name: name}
	info.Resource, info.Subresource, _ = strings.Cut(resource, "/")
	return info
}

// TestMissing checks the missing parts of rules, and the notes on known mistakes.
func TestMissing(t *testing.T) {
	t.Parallel()
	pods := rule("get,list", "-", "pods", "")
	for _, test := range []struct {
		rule rbacv1.PolicyRule
		in   string // the binding's namespace
		info *request.Info
		want string // parts, and prefixes of notes
	}{
		{pods, "", about("get", "", "pods", "dev", "a"), ""},
		{pods, "dev", about("get", "", "pods", "dev", "a"), ""},
		{pods, "dev", about("delete", "", "pods", "dev", "a"), "the verb delete"},
		{pods, "prod", about("get", "", "pods", "dev", "a"), "the namespace dev"},
		{pods, "dev", about("list", "", "pods", "", ""), "a ClusterRoleBinding"},
		{pods, "dev", about("get", "", "pods/log", "dev", "a"), "the resource pods/log (a rule for pods"},
		{rule("get", "-", "pods/log", ""), "", about("get", "", "pods", "dev", "a"),
			"the resource pods (a rule for the subresource log"},
		{rule("get", "-", "pods/logs", ""), "", about("get", "", "pods/log", "dev", "a"),
			"the resource pods/log (the subresource is called log"},
		{rule("get", "-", "pods/*", ""), "", about("get", "", "pods/log", "dev", "a"),
			`the resource pods/log (a rule has "*/log"`},
		{rule("get", "-", "*/log", ""), "", about("get", "", "pods/log", "dev", "a"), ""},
		{rule("get", "-", "Pod", ""), "", about("get", "", "pods", "dev", "a"),
			"the resource pods (resources are named by their plural"},
		{rule("get", "networking.k8s.io", "networkpolicy", ""), "",
			about("get", "networking.k8s.io", "networkpolicies", "dev", "a"),
			"the resource networkpolicies (resources are named by their plural"},
		{rule("get", "apps/v1", "deployments", ""), "", about("get", "apps", "deployments", "dev", "a"),
			"the API group apps (a rule names the group without its version"},
		{rule("get", "v1", "pods", ""), "", about("get", "", "pods", "dev", "a"),
			"the core API group (a rule names the group"},
		{rule("get", "extensions", "deployments", ""), "", about("get", "apps", "deployments", "dev", "a"),
			"the API group apps"},
		{rule("GET", "-", "pods", ""), "", about("get", "", "pods", "dev", "a"), "the verb get (verbs are in lower case"},
		{rule("get", "-", "secrets", "one"), "", about("get", "", "secrets", "dev", "two"), "the name two"},
		{rule("list", "-", "secrets", "one"), "", about("list", "", "secrets", "dev", ""), "all names"},
		{rule("list", "-", "secrets", "one"), "prod", about("get", "", "secrets", "dev", "two"),
			"the verb get, the name two, the namespace dev"},
		{urls("get", "/healthz"), "", &request.Info{Verb: "get", Path: "/healthz/"},
			"the URL /healthz/ (paths with and without a final slash differ"},
		{urls("get", "/healthz/*"), "", &request.Info{Verb: "get", Path: "/healthz/etcd"}, ""},
		{urls("get", "*"), "dev", &request.Info{Verb: "get", Path: "/x"}, "a ClusterRoleBinding"},
	} {
		var got []string
		for _, m := range lacks(&test.rule, test.in, test.info) {
			text := m.String()
			if m.Note != "" {
				text += " (" + m.Note
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); !strings.HasPrefix(text, test.want) || test.want == "" && text != "" {
			t.Errorf("%v in %q for %s:\n got %s\nwant %s", test.rule, test.in, Describe(test.info), text, test.want)
		}
	}
}

var (
	alice = &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "system:authenticated"}}
	robot = &user.DefaultInfo{Name: "system:serviceaccount:dev:robot"}
)

func bind(namespace, name, kind, role string, subjects ...string) Binding {
	b := Binding{Namespace: namespace, Name: name, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}}
	for _, s := range subjects {
		kind, name, _ := strings.Cut(s, ":")
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: kind, Name: name})
	}
	return b
}

// story returns a typical policy of a cluster.
func story() *Policy {
	return &Policy{
		Roles: []Role{
			{"", "cluster-admin", []rbacv1.PolicyRule{rule("*", "*", "*", ""), urls("*", "*")}},
			{"", "view", []rbacv1.PolicyRule{rule("get,list,watch", "-", "pods,pods/log,services,configmaps", "")}},
			{"", "edit", []rbacv1.PolicyRule{
				rule("*", "-", "pods,pods/log,services,configmaps", ""), rule("get", "-", "secrets", ""),
			}},
			{"", "system:log-collector", []rbacv1.PolicyRule{rule("get", "-", "pods/log", "")}},
			{"dev", "pods", []rbacv1.PolicyRule{rule("get,list", "-", "pods", "")}},
			{"dev", "logs", []rbacv1.PolicyRule{rule("get", "-", "pods/log", "")}},
			{"prod", "all", []rbacv1.PolicyRule{rule("*", "*", "*", "")}},
		},
		Bindings: []Binding{
			bind("dev", "looks", "Role", "pods", "Group:dev"),
			bind("dev", "gone", "Role", "gone", "User:alice"),
			bind("prod", "all", "Role", "all", "User:alice", "ServiceAccount:robot"),
			bind("", "others", "ClusterRole", "cluster-admin", "User:bob"),
		},
	}
}

// TestExplain holds whole explanations, in short.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		user user.Info
		info *request.Info
		want string
	}{
		{alice, about("get", "", "pods/log", "dev", "a"), `alice may not get pods/log "a" in the namespace dev: ` +
			`the closest rule is in Role dev/pods, which lacks the resource pods/log
near Role dev/pods by RoleBinding dev/looks to dev: the resource pods/log
near Role prod/all by RoleBinding prod/all to alice: the namespace dev
by Role dev/logs: RoleBinding dev
by ClusterRole view: RoleBinding dev
by ClusterRole edit: RoleBinding dev
by ClusterRole cluster-admin: RoleBinding dev
dangling RoleBinding dev/gone
`},
		{alice, about("delete", "", "pods", "dev", "a"), `alice may not delete pods "a" in the namespace dev: ` +
			`the closest rule is in Role dev/pods, which lacks the verb delete
near Role dev/pods by RoleBinding dev/looks to dev: the verb delete
near Role prod/all by RoleBinding prod/all to alice: the namespace dev
by ClusterRole edit: RoleBinding dev
by ClusterRole cluster-admin: RoleBinding dev
dangling RoleBinding dev/gone
`},
		{robot, about("list", "apps", "deployments", "", ""), `system:serviceaccount:dev:robot may not list ` +
			`deployments.apps in the whole cluster: the user has no similar rule
by ClusterRole cluster-admin: ClusterRoleBinding
`},
		{alice, &request.Info{Verb: "get", Path: "/metrics"}, `alice may not get /metrics: the user has no similar rule
by ClusterRole cluster-admin: ClusterRoleBinding
`},
	} {
		e := Explain(story(), test.user, test.info)
		var b strings.Builder
		fmt.Fprintln(&b, e.Summary)
		for _, n := range e.Nearest {
			fmt.Fprintf(&b, "near %s by %s to %s: %s\n", n.Role, n.Binding, n.Subject.Name, joinMissing(n.Missing))
		}
		for _, g := range e.GrantedBy {
			fmt.Fprintf(&b, "by %s: %s\n", g.Role, strings.TrimSpace(g.Binding.Kind+" "+g.Binding.Namespace))
		}
		for _, d := range e.Dangling {
			fmt.Fprintf(&b, "dangling %s\n", d)
		}
		if b.String() != test.want {
			t.Errorf("got:\n%swant:\n%s", b.String(), test.want)
		}
	}
	// A component's role is proposed if there is no other.
	p := story()
	p.Roles = p.Roles[3:4]
	if e := Explain(p, alice, about("get", "", "pods/log", "dev", "")); len(e.GrantedBy) != 1 {
		t.Errorf("granted by %v", e.GrantedBy)
	}
	if s := Explain(p, robot, about("get", "", "pods", "dev", "")).Binding.Subject; s.Kind != "ServiceAccount" ||
		s.Namespace != "dev" || s.Name != "robot" || s.APIGroup != "" {
		t.Errorf("the robot is %+v", s)
	}
	p = &Policy{Hidden: []string{"clusterroles", "roles"}}
	if e := Explain(p, alice, about("get", "", "pods", "dev", "")); !strings.Contains(e.Summary,
		"because the caller may not list clusterroles, roles") {
		t.Errorf("all rules are hidden, but the summary is %s", e.Summary)
	}
}
