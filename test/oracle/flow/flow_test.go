package flow

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"
	upstream "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/apihelpers"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
)

//go:linkname matchesFlowSchema k8s.io/apiserver/pkg/util/flowcontrol.matchesFlowSchema
func matchesFlowSchema(digest flowcontrol.RequestDigest, schema *flowcontrolv1.FlowSchema) bool

var resolver = &upstream.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// query is a request as both sides see it.
type query struct {
	r     *http.Request
	info  *request.Info
	there *upstream.RequestInfo
	user  user.Info
}

func ask(t *testing.T, method, target string, u user.Info) query {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	info, err := request.Parse(r)
	there, err2 := resolver.NewRequestInfo(r)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return query{r, info, there, u}
}

// random returns a request of a small world, so that rules meet it.
func random(t *testing.T, r *rand.Rand) query {
	groups := [][]string{
		{user.AllAuthenticated}, {user.AllAuthenticated, "dev"}, {user.AllAuthenticated, user.NodesGroup}, {},
		{user.AllUnauthenticated}, {user.SystemPrivilegedGroup, user.AllAuthenticated},
		{user.AllAuthenticated, "system:serviceaccounts", "system:serviceaccounts:kube-system"},
	}
	names := []string{"alice", "bob", "system:serviceaccount:default:a", "system:serviceaccount:kube-system:b",
		"system:serviceaccount:default", "system:kube-scheduler", "system:kube-controller-manager", "system:node:n1"}
	u := &user.DefaultInfo{Name: one(r, names), Groups: one(r, groups)}
	targets := []string{"/healthz", "/healthz/etcd", "/livez", "/readyz", "/metrics", "/debug/pprof/heap", "/debugger",
		"/api/v1/pods", "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system/pods/a",
		"/api/v1/namespaces/default/pods/a/status", "/api/v1/nodes/n1/status", "/api/v1/nodes/n1",
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", "/apis/apps/v1/deployments?watch=1",
		"/api/v1/namespaces/kube-system/endpoints/x", "/apis/a.io/v1/as/x/scale", "/api", "/"}
	return ask(t, one(r, []string{"GET", "GET", "PUT", "POST", "DELETE", "PATCH"}), one(r, targets), u)
}

func one[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some returns the wildcard, or some of the values.
func some(r *rand.Rand, wildcard string, from ...string) []string {
	if r.IntN(3) == 0 {
		return []string{wildcard}
	}
	var out []string
	for range 1 + r.IntN(2) {
		out = append(out, one(r, from))
	}
	return out
}

func randomSchema(r *rand.Rand, name string, levels []string) *flowcontrolv1.FlowSchema {
	s := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.MatchingPrecedence = int32(2 + r.IntN(6))
	s.Spec.PriorityLevelConfiguration.Name = one(r, levels)
	for range r.IntN(3) {
		var rule flowcontrolv1.PolicyRulesWithSubjects
		for range r.IntN(3) {
			rule.Subjects = append(rule.Subjects, randomSubject(r))
		}
		for range r.IntN(3) {
			rule.ResourceRules = append(rule.ResourceRules, flowcontrolv1.ResourcePolicyRule{
				Verbs:     some(r, "*", "get", "list", "watch", "create", "update", "delete", "patch"),
				APIGroups: some(r, "*", "", "apps", "coordination.k8s.io", "a.io"),
				Resources: some(r, "*", "pods", "pods/status", "nodes/status", "leases", "nodes", "as/scale",
					"deployments", "pods/"),
				ClusterScope: r.IntN(2) == 0, Namespaces: some(r, "*", "default", "kube-system", "kube-node-lease"),
			})
		}
		for range r.IntN(3) {
			rule.NonResourceRules = append(rule.NonResourceRules, flowcontrolv1.NonResourcePolicyRule{
				Verbs:           some(r, "*", "get", "put"),
				NonResourceURLs: some(r, "*", "/healthz", "/healthz/*", "/debug/*", "/debug", "/", "/debug/pprof/"),
			})
		}
		s.Spec.Rules = append(s.Spec.Rules, rule)
	}
	return s
}

func randomSubject(r *rand.Rand) flowcontrolv1.Subject {
	switch r.IntN(4) {
	case 0:
		return flowcontrolv1.Subject{Kind: "User",
			User: &flowcontrolv1.UserSubject{Name: one(r, []string{"*", "alice", "bob", "system:node:n1"})}}
	case 1:
		return flowcontrolv1.Subject{Kind: "Group",
			Group: &flowcontrolv1.GroupSubject{Name: one(r, []string{"*", "dev", user.AllAuthenticated})}}
	case 2:
		return flowcontrolv1.Subject{Kind: "ServiceAccount", ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
			Namespace: one(r, []string{"default", "kube-system", "def"}), Name: one(r, []string{"*", "a", "b"})}}
	}
	return flowcontrolv1.Subject{
		Kind: one(r, []flowcontrolv1.SubjectKind{"User", "Group", "ServiceAccount", "Other"})}
}

// TestClassification compares the schemas of random requests on both sides, with random schemas and a new server's.
func TestClassification(t *testing.T) {
	t.Parallel()
	levels := slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations,
		bootstrap.SuggestedPriorityLevelConfigurations)
	for seed := range cases(t, 200) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		schemas := slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas)
		for i := range 8 {
			schemas = append(schemas, randomSchema(r, "random-"+strconv.Itoa(i),
				[]string{"global-default", "workload-low", "exempt", "missing"}))
		}
		c := flow.New(flow.Options{Total: 600})
		if broken := c.Configure(schemas, levels); broken != nil {
			t.Fatal(broken)
		}
		ordered := slices.DeleteFunc(slices.Clone(schemas), func(s *flowcontrolv1.FlowSchema) bool {
			return s.Spec.PriorityLevelConfiguration.Name == "missing"
		})
		slices.SortFunc(ordered, func(a, b *flowcontrolv1.FlowSchema) int {
			if (apihelpers.FlowSchemaSequence{a, b}).Less(0, 1) {
				return -1
			}
			return 1
		})
		for range 200 {
			q := random(t, r)
			want := "catch-all"
			digest := flowcontrol.RequestDigest{RequestInfo: q.there, User: q.user}
			if at := slices.IndexFunc(ordered, func(s *flowcontrolv1.FlowSchema) bool {
				return matchesFlowSchema(digest, s)
			}); at >= 0 {
				want = ordered[at].Name
			}
			var ticket flow.Ticket
			if !c.Admit(context.Background(), &ticket, q.r, q.info, q.user) {
				t.Fatal("an idle server rejects a request")
			}
			if got, _ := ticket.Names(); got != want {
				t.Errorf("seed %d: %s %s by %v belongs to %s, want %s", seed, q.r.Method, q.r.URL, q.user, got, want)
			}
			c.Done(&ticket)
		}
	}
}

// TestHash compares the numbers by which queues are dealt: servers of one cluster deal alike.
func TestHash(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "system:serviceaccount:kube-system:b", strings.Repeat("x", 400)} {
		for _, schema := range []string{"s", strings.Repeat("s", 63)} {
			if got, want := hash(schema, text), hashFlowID(schema, text); got != want {
				t.Errorf("hash of %q, %q is %d, want %d", schema, text, got, want)
			}
		}
	}
}

//go:linkname hash github.com/bowsprit/bowsprit/internal/front/flow.hash
func hash(schema, distinguisher string) uint64

//go:linkname hashFlowID k8s.io/apiserver/pkg/util/flowcontrol.hashFlowID
func hashFlowID(schema, distinguisher string) uint64
