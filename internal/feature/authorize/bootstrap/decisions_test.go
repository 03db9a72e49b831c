package bootstrap

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/request"
)

// TestDecisions checks the authorization of a server with only the policy's roles.
func TestDecisions(t *testing.T) {
	t.Parallel()
	e := rbac.New(slog.New(slog.DiscardHandler))
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		e.Apply(rbac.Change{
			Binding: strings.HasSuffix(o.Kind, "Binding"), Namespace: o.Namespace, Name: o.Name, Rules: o.Rules,
			RoleRef: o.RoleRef, Subjects: o.Subjects,
		})
	}
	users := map[string]*user.DefaultInfo{
		"m": {Name: "root", Groups: []string{"system:masters", "system:authenticated"}},
		"b": {Name: "bob", Groups: []string{"system:authenticated"}},
		"a": {Name: "system:anonymous", Groups: []string{"system:unauthenticated"}},
		"n": {Name: "nobody"},
		"s": {Name: "system:serviceaccount:n:default", Groups: []string{"system:serviceaccounts"}},
		"c": {Name: "system:serviceaccount:kube-system:clusterrole-aggregation-controller"},
	}
	for _, tc := range []struct {
		method, target string
		allowed        string // the allowed users, by the letters above
	}{
		{"GET", "/healthz", "mba"}, {"GET", "/livez", "mba"}, {"GET", "/readyz?verbose", "mba"},
		{"GET", "/version", "mba"}, {"GET", "/version/", "mba"},
		{"GET", "/readyz/etcd", "m"}, {"HEAD", "/healthz", "m"}, {"POST", "/version", "m"}, {"GET", "/metrics", "m"},
		{"GET", "/", "m"}, {"GET", "/foo", "m"},
		{"GET", "/api", "mb"}, {"GET", "/api/v1", "mb"}, {"GET", "/apis", "mb"}, {"GET", "/apis/g", "mb"},
		{"GET", "/apis/g/v1", "mb"}, {"GET", "/openapi", "mb"}, {"GET", "/openapi/v3/apis/g/v1", "mb"},
		{"GET", "/apisx", "m"}, {"POST", "/api/v1", "m"}, {"GET", "/openid/v1/jwks", "ms"},
		{"GET", "/api/v1/pods", "m"}, {"GET", "/api/v1/namespaces/n/pods/x", "m"}, {"DELETE", "/apis/g/v1/cs/x", "m"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "mb"},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "m"},
		{"PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/x", "mc"},
	} {
		for letter, u := range users {
			info, err := request.Parse(httptest.NewRequest(tc.method, tc.target, nil))
			if err != nil {
				t.Fatal(err)
			}
			d, err := authz.Union{e}.Authorize(t.Context(), u, info)
			if err != nil || d.Allowed() != strings.Contains(tc.allowed, letter) {
				t.Errorf("%s %s by %s: allowed %v, %v", tc.method, tc.target, u.Name, d.Allowed(), err)
			}
		}
	}
}
