package review_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/feature/review"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// TestTokenRequests checks the audience, lifetime and bound object of tokens.
func TestTokenRequests(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	s.Time = time.Now()
	s.Create(ref.Namespaces.GroupResource(), "", `{"metadata":{"name":"n"}}`)
	for _, name := range []string{"robot", "other"} {
		s.Create(ref.ServiceAccounts.GroupResource(), "n", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		s.Create(ref.Pods.GroupResource(), "n", fmt.Sprintf(`{"metadata":{"name":"of-%[1]s"},"spec":{
			"serviceAccountName":%[1]q,"nodeName":"gone","containers":[{"name":"c","image":"i"}]}}`, name))
	}
	s.Create(ref.Secrets.GroupResource(), "n", `{"metadata":{"name":"s"}}`)
	keys, err := serviceaccount.OpenKeys(serviceaccount.KeyConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	tokens := serviceaccount.New(serviceaccount.Config{Keys: keys, View: s.View, Now: s.Now, Audiences: []string{"us"}})
	issue := review.Answers(review.Config{
		Tokens: tokens, View: s.View, Now: s.Now, NewUID: s.NewUID, MaxTokenLife: 2 * time.Hour,
	})["serviceaccounts/token"]
	pass := func(object.Object) error { return nil }

	for _, c := range []struct {
		name, body string
		good       string // the audience that it is valid for
		life       time.Duration
		extra      string // extra user information
		refused    string
		warned     bool
	}{
		{name: "robot", body: `{spec: {expirationSeconds: 3600}}`, good: "us", life: time.Hour},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, audiences: [them]}}`, good: "them", life: time.Hour},
		{name: "robot", body: `{spec: {expirationSeconds: 9000}}`, good: "us", life: 2 * time.Hour, warned: true},
		// A token that a kubelet requests lives longer than reported, if it is for this server and bound to a pod.
		{name: "robot", body: `{spec: {expirationSeconds: 3607, boundObjectRef: {apiVersion: v1, kind: Pod,
			name: of-robot}}}`, good: "us", life: 3607 * time.Second, extra: "of-robot"},
		{name: "robot", body: `{spec: {expirationSeconds: 600, boundObjectRef: {apiVersion: v1, kind: Secret,
			name: s}}}`,
			good: "us", life: 10 * time.Minute},

		{name: "robot", body: `{spec: {expirationSeconds: 599}}`,
			refused: "may not specify a duration less than 10 minutes"},
		{name: "robot", body: `{spec: {expirationSeconds: 4294967297}}`,
			refused: "may not specify a duration larger than 2^32 seconds"},
		{name: "nobody", body: `{spec: {expirationSeconds: 3600}}`, refused: `serviceaccounts "nobody" not found`},
		{name: "robot", body: `{metadata: {name: other}, spec: {expirationSeconds: 3600}}`,
			refused: "must match the service account name if specified"},
		{name: "robot", body: `{metadata: {uid: x}, spec: {expirationSeconds: 3600}}`,
			refused: "the UID in the token request (x) does not match the UID of the service account"},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: Pod,
			name: of-other}}}`,
			refused: `cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.`},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: Pod,
			name: none}}}`,
			refused: `pods "none" not found`},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: Pod}}}`,
			refused: "Name parameter required."},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: Node, name: a/b}}}`,
			refused: `Name parameter invalid: "a/b": may not contain '/'`},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: Secret,
			name: s, uid: x}}}`,
			refused: "the UID in the bound object reference (x) does not match the UID in record."},
		{name: "robot", body: `{spec: {expirationSeconds: 3600, boundObjectRef: {apiVersion: v1, kind: ConfigMap,
			name: s}}}`,
			refused: "cannot bind token to object of type /v1, Kind=ConfigMap"},
	} {
		ctx := request.NewContext(t.Context(), &request.Scope{})
		call := &verb.Call{Namespace: "n", Name: c.name}
		out, err := issue(ctx, call, decode(t, c.body), pass)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s %s: %v, want %s", c.name, c.body, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.body, err)
			continue
		}
		want := s.Now().Add(c.life).UTC().Format(time.RFC3339)
		warnings := request.ScopeOf(ctx).Warnings()
		if object.String(out, "status", "expirationTimestamp") != want || len(warnings) > 0 != c.warned {
			t.Errorf("%s: %s, want %s; warnings %q", c.body, codec.AppendJSON(nil, out), want, warnings)
		}
		token := object.String(out, "status", "token")
		u, _, err := tokens.Authenticate(ctx, token, []string{c.good})
		if err != nil || u == nil || u.GetName() != "system:serviceaccount:n:robot" ||
			!strings.Contains(fmt.Sprint(u.GetExtra()), c.extra) {
			t.Errorf("%s: %v, %v", c.body, u, err)
		}
		if u, _, err := tokens.Authenticate(ctx, token, []string{"nowhere"}); err == nil {
			t.Errorf("%s: good for others too: %v", c.body, u)
		}
	}

	call := &verb.Call{Namespace: "n", Name: "robot"}
	out, err := issue(t.Context(), call, decode(t, `{spec: {expirationSeconds: 3600, audiences: [them, us]}}`), pass)
	if err != nil {
		t.Fatal(err)
	}
	_, good, err := tokens.Authenticate(t.Context(), object.String(out, "status", "token"), []string{"us", "x", "them"})
	if err != nil || !slices.Equal(good, []string{"us", "them"}) {
		t.Errorf("good for %q in this order, %v", good, err)
	}

	refusal := errors.New("refused")
	if _, err := issue(t.Context(), call, decode(t, `{spec: {expirationSeconds: 3600}}`),
		func(object.Object) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("admission was not asked: %v", err)
	}
}
