package authz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	upstream "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// rules allows a share of all permissions, chosen by their hash, so that both sides are answered alike.
type rules struct {
	seed  byte
	share uint32 // of 8
}

func (r rules) allows(parts ...string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte{r.seed})
	_, _ = h.Write([]byte(strings.Join(parts, "|")))
	return h.Sum32()>>7%8 < r.share
}

// theirs and ours answer the two interfaces by the same rules.
type theirs struct{ rules }

func (t theirs) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if t.allows(a.GetUser().GetName(), fmt.Sprint(a.GetUser().GetExtra()), a.GetVerb(), a.GetAPIGroup(),
		a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(), a.GetPath()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "because", nil
}

type ours struct{ rules }

func (o ours) Authorize(_ context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	d := authz.Decision{Reason: "because"}
	if o.allows(u.GetName(), fmt.Sprint(u.GetExtra()), info.Verb, info.Group, info.Resource, info.Subresource,
		info.Namespace, info.Name,
		info.Path) {
		d.Verdict = authz.Allow
	}
	return d, nil
}

func TestImpersonationMatchesKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pick := func(values ...string) string { return values[rng.IntN(len(values))] }
	outcomes := map[string]int{}
	var both pair
	for n := range 20_000 {
		if n%5 == 0 { // both remember which way worked last, and try that first
			both = newPair(rules{seed: byte(rng.IntN(256)), share: uint32(rng.IntN(9))})
		}
		header := http.Header{"Accept": {"application/json"}}
		if rng.IntN(12) > 0 {
			header.Set("Impersonate-User",
				pick("jane", "system:anonymous", "system:node:n1", "system:node:n2", "system:node:UP",
					"system:serviceaccount:ns:sa", "system:serviceaccount:ns:", "<b>"))
		}
		if rng.IntN(4) == 0 {
			header.Set("Impersonate-Uid", "7")
		}
		if rng.IntN(2) == 0 {
			for range rng.IntN(6) {
				header.Add("Impersonate-Group",
					pick("a", "b", "c", "d", "", "system:masters", "system:authenticated", "system:unauthenticated"))
			}
		}
		if rng.IntN(4) == 0 { // one key: with more, both go through them in the order of a map
			key := http.CanonicalHeaderKey("Impersonate-Extra-" +
				pick("Scopes", "Acme.com%2Fproject", "Acme.com%2Fa%2Fb", "Acme.com%2F%41", "%Zz", ""))
			for range 1 + rng.IntN(5) {
				header[key] = append(header[key], pick("x", "y", "z", ""))
			}
		}
		u := &user.DefaultInfo{
			Name: pick("bob", "system:serviceaccount:kube-system:agent"), Groups: []string{user.AllAuthenticated},
		}
		if rng.IntN(2) == 0 {
			u.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}
		}
		r := httptest.NewRequest(pick("GET", "POST", "DELETE"),
			pick("/api/v1/namespaces/n/pods", "/apis/g.io/v1/cs/x/status", "/foo"), nil)
		r.Header = header

		wantAs, wantStatus, wantHeader := both.asTheirs(t, u, r)
		gotAs, gotStatus, gotHeader := both.asOurs(t, u, r)
		if !reflect.DeepEqual(gotAs, wantAs) || gotStatus != wantStatus || !reflect.DeepEqual(gotHeader, wantHeader) {
			t.Fatalf("%s %s %v by %+v, %+v:\n got %+v %s %v\nwant %+v %s %v", r.Method, r.URL, header, u, both.rules, gotAs,
				gotStatus, gotHeader, wantAs, wantStatus, wantHeader)
		}
		switch {
		case gotStatus == "" && gotAs.Name != u.Name:
			outcomes["allowed"]++
		case strings.Contains(gotStatus, "impersonate-on:"):
			outcomes["refused in a constrained mode"]++
		case gotStatus != "":
			outcomes["refused otherwise"]++
		}
	}
	for _, outcome := range []string{"allowed", "refused in a constrained mode", "refused otherwise"} {
		if outcomes[outcome] < 500 {
			t.Errorf("only %d cases were %s", outcomes[outcome], outcome)
		}
	}
}

// pair are both sides with the same rules.
type pair struct {
	rules  rules
	theirs http.Handler
	ours   *authz.Impersonations
	passed *[]*http.Request // requests that passed their chain
}

func newPair(r rules) pair {
	p := pair{rules: r, ours: authz.NewImpersonations(ours{r}, nil), passed: new([]*http.Request)}
	p.theirs = impersonation.WithConstrainedImpersonation(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { *p.passed = append(*p.passed, r) },
	), theirs{r}, scheme.Codecs.WithoutConversion())
	return p
}

// asTheirs returns the effective user, or the message of the refusal, and the remaining headers.
func (p pair) asTheirs(t *testing.T, u *user.DefaultInfo, r *http.Request) (
	as user.DefaultInfo, message string, header http.Header,
) {
	t.Helper()
	resolver := upstream.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	r = r.Clone(upstream.WithUser(upstream.WithRequestInfo(r.Context(), info), u))
	w := httptest.NewRecorder()
	*p.passed = nil
	p.theirs.ServeHTTP(w, r)
	for _, passed := range *p.passed {
		u, _ := upstream.UserFrom(passed.Context())
		return plain(u), "", passed.Header
	}
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	return user.DefaultInfo{}, status.Message, nil
}

func (p pair) asOurs(t *testing.T, u *user.DefaultInfo, r *http.Request) (
	as user.DefaultInfo, message string, header http.Header,
) {
	t.Helper()
	r = r.Clone(r.Context())
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := authn.Impersonation(r.Header)
	acting := user.Info(u)
	if err == nil && wanted != nil {
		var as authz.Impersonated
		as, err = p.ours.Impersonate(r.Context(), u, wanted, info)
		acting = as.User
	}
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			t.Fatal(err)
		}
		return user.DefaultInfo{}, status.Status().Message, nil
	}
	return plain(acting), "", r.Header
}

// plain returns the four parts of a user, with nil for empty ones.
func plain(u user.Info) user.DefaultInfo {
	p := user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Groups: append([]string(nil), u.GetGroups()...),
		Extra: map[string][]string{},
	}
	for key, values := range u.GetExtra() {
		p.Extra[key] = values
	}
	return p
}
