package rest_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// noCreations is an authorizer that allows everything but creations.
type noCreations struct {
	mu      sync.Mutex
	checked []request.Info
}

func (n *noCreations) Authorize(_ context.Context, _ user.Info, info *request.Info) (authz.Decision, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.checked = append(n.checked, *info)
	if info.Verb == "create" {
		return authz.Decision{Reason: "no creations"}, nil
	}
	return authz.Decision{Verdict: authz.Allow}, nil
}

// TestCreationByOtherVerbs checks that an update or an apply that creates needs the permission to create, and has no
// effect without it. Package front checks only the verb of the request.
func TestCreationByOtherVerbs(t *testing.T) {
	t.Parallel()
	n := &noCreations{}
	s := startWith(t, memory.New(), func(c *verb.Config) { c.Authorizer = n })
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	forbidden := map[string]string{"reason": "Forbidden"}
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"one"}}`
	run(t, s, []step{
		{do: "PUT " + leases + "/one", body: lease, code: http.StatusForbidden, holds: map[string]string{
			"message": `leases.coordination.k8s.io "one" is forbidden: User "admin" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default": no creations`,
		}},
		{do: "GET " + leases + "/one", code: http.StatusNotFound},
		{do: "APPLY " + one + "?fieldManager=me",
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`,
			code: http.StatusForbidden, holds: forbidden},
		{do: "APPLY " + one + "?fieldManager=me&dryRun=All",
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`, code: http.StatusForbidden,
			holds: forbidden},
		{do: "GET " + one, code: http.StatusNotFound},
		// Front has already authorized this one.
		{do: "POST " + leases, body: lease, code: http.StatusCreated},
		{do: "APPLY " + leases + "/one?fieldManager=me", body: lease, code: http.StatusOK},
	})
	for _, info := range n.checked {
		if info.Verb != "create" || info.Name != "one" || info.Namespace != "default" || !info.IsResource {
			t.Errorf("asked %+v", info)
		}
	}
	if len(n.checked) != 3 {
		t.Errorf("asked %d times", len(n.checked))
	}
}
