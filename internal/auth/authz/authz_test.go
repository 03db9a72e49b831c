package authz

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

var (
	master = &user.DefaultInfo{Name: "root", Groups: []string{"system:masters", "system:authenticated"}}
	bob    = &user.DefaultInfo{Name: "bob", Groups: []string{"system:authenticated"}}
)

func info(t *testing.T, method, target string) *request.Info {
	t.Helper()
	i, err := request.Parse(httptest.NewRequest(method, target, nil))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, target, reason, want string
	}{
		{"GET", "/api/v1/namespaces/default/pods", "",
			`pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"GET", "/api/v1/namespaces/default/pods/x", "",
			`pods "x" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "default"`},
		{"GET", "/apis/g.io/v1/cs?watch=1", "",
			`cs.g.io is forbidden: User "bob" cannot watch resource "cs" in API group "g.io" at the cluster scope`},
		{"PUT", "/apis/g.io/v1/namespaces/n/cs/x/status", "no role",
			`cs.g.io "x" is forbidden: User "bob" cannot update resource "cs/status" in API group "g.io" in the namespace "n": no role`},
		{"GET", "/foo", "", `forbidden: User "bob" cannot get path "/foo"`},
		{"GET", "/foo/%3Cb%3E&", "", `forbidden: User "bob" cannot get path "/foo/&lt;b&gt;&amp;"`},
	} {
		err := Forbidden(bob, info(t, tc.method, tc.target), tc.reason)
		if err.Error() != tc.want || err.ErrStatus.Code != 403 || err.ErrStatus.Reason != "Forbidden" {
			t.Errorf("%s %s: %+v\nwant %s", tc.method, tc.target, err.ErrStatus, tc.want)
		}
	}
}

// granted allows the listed permissions: "verb group/resource/name".
type granted map[string]bool

func (g granted) Authorize(_ context.Context, _ user.Info, info *request.Info) (Decision, error) {
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	return allowIf(g[info.Verb+" "+info.Group+"/"+resource+"/"+info.Name]), nil
}

func TestImpersonate(t *testing.T) {
	t.Parallel()
	const auth = "authentication.k8s.io"
	agent := &user.DefaultInfo{
		Name: "system:serviceaccount:kube-system:agent", Extra: map[string][]string{serviceaccount.NodeNameKey: {"n1"}},
	}
	for _, tc := range []struct {
		name   string
		a      Authorizer
		user   user.Info
		wanted user.DefaultInfo
		want   string // name uid groups, or the error
	}{
		{"master", Union{}, master, user.DefaultInfo{Name: "jane"}, "jane  system:authenticated"},
		{"master as master", Union{}, master, user.DefaultInfo{Name: "jane", Groups: []string{"system:masters"}},
			"jane  system:masters,system:authenticated"},
		{"master as anonymous", Union{}, master, user.DefaultInfo{Name: "system:anonymous"},
			"system:anonymous  system:unauthenticated"},
		{"master as unauthenticated", Union{}, master,
			user.DefaultInfo{Name: "x", Groups: []string{"system:unauthenticated"}}, "x  system:unauthenticated"},
		{"master as service account", Union{}, master, user.DefaultInfo{Name: "system:serviceaccount:ns:sa"},
			"system:serviceaccount:ns:sa  system:serviceaccounts,system:serviceaccounts:ns,system:authenticated"},
		{"master as node", Union{}, master, user.DefaultInfo{Name: "system:node:n1"},
			"system:node:n1  system:nodes,system:authenticated"},
		{"nothing granted", granted{}, bob, user.DefaultInfo{Name: "jane"},
			`pods "x" is forbidden: User "bob" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "n"`},
		{"service account with groups", granted{}, bob,
			user.DefaultInfo{Name: "system:serviceaccount:ns:sa", Groups: []string{"g"}},
			`serviceaccounts "sa" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns"`},
		{"service account", granted{}, bob, user.DefaultInfo{Name: "system:serviceaccount:ns:sa"},
			`pods "x" is forbidden: User "bob" cannot impersonate-on:serviceaccount:get resource "pods" in API group "" in the namespace "n"`},
		{"node", granted{}, bob, user.DefaultInfo{Name: "system:node:n1"},
			`pods "x" is forbidden: User "bob" cannot impersonate-on:arbitrary-node:get resource "pods" in API group "" in the namespace "n"`},
		{"own node", granted{}, agent, user.DefaultInfo{Name: "system:node:n1"},
			`pods "x" is forbidden: User "system:serviceaccount:kube-system:agent" cannot impersonate-on:associated-node:get resource "pods" in API group "" in the namespace "n"`},
		{"own node granted",
			granted{
				"impersonate-on:associated-node:get /pods/x": true, "impersonate:associated-node " + auth +
					"/nodes/*": true,
			}, agent, user.DefaultInfo{Name: "system:node:n1"},
			"system:node:n1  system:nodes,system:authenticated"},
		{"older way",
			granted{
				"impersonate /users/jane": true, "impersonate /groups/g": true, "impersonate " + auth + "/uids/7": true,
				"impersonate " + auth + "/userextras/k/v": true,
			}, bob,
			user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
			"jane 7 g,system:authenticated"},
		{"constrained way",
			granted{
				"impersonate-on:user-info:get /pods/x": true, "impersonate:user-info " + auth + "/users/jane": true,
				"impersonate:user-info " + auth + "/groups/g": true,
			}, bob,
			user.DefaultInfo{Name: "jane", Groups: []string{"g"}}, "jane  g,system:authenticated"},
		{"constrained way lacks a group",
			granted{
				"impersonate-on:user-info:get /pods/x": true, "impersonate:user-info " + auth + "/users/jane": true,
			}, bob, user.DefaultInfo{Name: "jane", Groups: []string{"g"}},
			`groups.authentication.k8s.io "g" is forbidden: User "bob" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope`},
		{"constrained master",
			granted{
				"impersonate-on:user-info:get /pods/x": true, "impersonate:user-info " + auth + "/users/jane": true,
			}, bob, user.DefaultInfo{Name: "jane", Groups: []string{"system:masters"}},
			`groups.authentication.k8s.io "system:masters" is forbidden: User "bob" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed`},
		{"many groups at once",
			granted{
				"impersonate-on:user-info:get /pods/x": true, "impersonate:user-info " + auth + "/users/jane": true,
				"impersonate:user-info " + auth + "/groups/*": true,
			}, bob,
			user.DefaultInfo{Name: "jane", Groups: []string{"a", "b", "c", "d"}}, "jane  a,b,c,d,system:authenticated"},
	} {
		before := len(tc.wanted.Groups)
		as, err := NewImpersonations(tc.a, nil).Impersonate(t.Context(), tc.user, &tc.wanted,
			info(t, "GET", "/api/v1/namespaces/n/pods/x"))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = as.User.GetName() + " " + as.User.GetUID() + " " + strings.Join(as.User.GetGroups(), ",")
		}
		if got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
		if len(tc.wanted.Groups) != before {
			t.Errorf("%s: the wanted user was changed", tc.name)
		}
	}
}

type broken struct{}

func (broken) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return Decision{Reason: "why"}, errors.New("no roles")
}

func TestImpersonateWithBrokenAuthorizer(t *testing.T) {
	t.Parallel()
	_, err := NewImpersonations(broken{}, nil).Impersonate(t.Context(), bob,
		&user.DefaultInfo{Name: "jane"}, info(t, "GET", "/x"))
	if want := `forbidden: User "bob" cannot impersonate-on:user-info:get path "/x": no roles: why`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// seen records an authorizer's requests, and allows the granted ones.
type seen struct {
	granted
	requests []string
}

func (s *seen) Authorize(ctx context.Context, u user.Info, info *request.Info) (Decision, error) {
	s.requests = append(s.requests, fmt.Sprint(info.Verb, " ", info.Resource, " ", info.Name, " ", u.GetExtra()))
	return s.granted.Authorize(ctx, u, info)
}

// TestLastModeFirst checks that the last successful mode is tried first, so that the older way needs one check for a
// name.
func TestLastModeFirst(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	a := &seen{granted: granted{"impersonate /users/jane": true}}
	m := NewImpersonations(a, registry)
	wanted := &user.DefaultInfo{Name: "jane"}
	for _, want := range [][]string{
		{"impersonate-on:user-info:get pods x map[]", "impersonate users jane map[]"}, {"impersonate users jane map[]"},
	} {
		a.requests = nil
		as, err := m.Impersonate(t.Context(), bob, wanted, info(t, "GET", "/api/v1/namespaces/n/pods/x"))
		if err != nil || as.Constraint != "" || !slices.Equal(a.requests, want) {
			t.Errorf("got %+v, %v, asked %q, want %q", as, err, a.requests, want)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 4 {
		t.Fatal(len(families), err)
	}
	if got := families[1].GetMetric()[0].GetCounter().GetValue(); families[1].GetName() !=
		"apiserver_impersonation_attempts_total" || got != 2 {
		t.Errorf("%s is %v", families[1].GetName(), got)
	}
}

// TestAssociatedNodeIsNotNamed checks that authorization as the own node does not include the node's name.
func TestAssociatedNodeIsNotNamed(t *testing.T) {
	t.Parallel()
	a := &seen{granted: granted{
		"impersonate-on:associated-node:get /pods/x":                true,
		"impersonate:associated-node authentication.k8s.io/nodes/*": true,
	}}
	agent := &user.DefaultInfo{
		Name: "system:serviceaccount:kube-system:agent", Extra: map[string][]string{serviceaccount.NodeNameKey: {"n1"}},
	}
	as, err := NewImpersonations(a, nil).Impersonate(t.Context(), agent, &user.DefaultInfo{Name: "system:node:n1"},
		info(t, "GET", "/api/v1/namespaces/n/pods/x"))
	const extra = "map[authentication.kubernetes.io/associated-node-keys:[authentication.kubernetes.io/node-name]]"
	want := []string{"impersonate-on:associated-node:get pods x " + extra, "impersonate:associated-node nodes * " + extra}
	if err != nil || as.Constraint != "impersonate:associated-node" || !slices.Equal(a.requests, want) {
		t.Errorf("got %+v, %v, asked %q, want %q", as, err, a.requests, want)
	}
}

func TestLastModesAreBounded(t *testing.T) {
	t.Parallel()
	var l lastModes
	for i := range 2*lastModesLimit + 1 {
		l.set(fmt.Sprint(i), legacy)
		if len(l.modes) > lastModesLimit {
			t.Fatalf("%d users", len(l.modes))
		}
	}
}

// TestLegacyImpersonationOnly checks that with only the older way the permissions of the constrained modes have no
// effect.
func TestLegacyImpersonationOnly(t *testing.T) {
	t.Parallel()
	m := NewImpersonations(granted{
		"impersonate-on:user-info:get /pods/x":                   true,
		"impersonate:user-info authentication.k8s.io/users/jane": true,
	}, nil)
	ask := func() error {
		_, err := m.Impersonate(t.Context(), bob, &user.DefaultInfo{Name: "jane"},
			info(t, "GET", "/api/v1/namespaces/n/pods/x"))
		return err
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	refused := func(wanted *user.DefaultInfo, want string) {
		t.Helper()
		_, err := m.Impersonate(t.Context(), bob, wanted, info(t, "GET", "/api/v1/namespaces/n/pods/x"))
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	nameless := &user.DefaultInfo{
		UID: "7", Groups: []string{"g", ""}, Extra: map[string][]string{"b": {"2"}, "a": {"1", "x"}},
	}
	refused(nameless, `requested &user.DefaultInfo{Name:"", UID:"7", Groups:[]string{"g", ""}, `+
		`Extra:map[string][]string{"a":[]string{"1", "x"}, "b":[]string{"2"}}} without impersonating a user name`)
	m.LegacyOnly = true
	refused(nameless, "requested [{Group  g    } {Group      } {UserExtra  1  authentication.k8s.io/v1  a} "+
		"{UserExtra  x  authentication.k8s.io/v1  a} {UserExtra  2  authentication.k8s.io/v1  b} "+
		"{UID  7  authentication.k8s.io/v1  }] without impersonating a user")
	const noJane = `users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group "" ` +
		`at the cluster scope`
	refused(&user.DefaultInfo{Name: "jane"}, noJane)
	// The UID is checked last.
	m.authorizer = granted{"impersonate /users/jane": true}
	refused(&user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"g"}},
		`groups "g" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope`)
	// The response does not show the authorizer's own error, and an allowed user with an error is refused.
	m.authorizer = broken{}
	refused(&user.DefaultInfo{Name: "jane"}, noJane+": why")
	m.authorizer = doubtful{}
	refused(&user.DefaultInfo{Name: "jane"}, noJane)
}

// doubtful allows, with an error.
type doubtful struct{}

func (doubtful) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return Decision{Verdict: Allow}, errors.New("no roles")
}
