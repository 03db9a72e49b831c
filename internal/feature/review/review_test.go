package review_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/review"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// world authenticates the token "good" as jane for the audience "here", and lets everybody get and nobody delete.
type world struct{ requests int }

func (w *world) Authorize(_ context.Context, resource user.Info, info *request.Info) (authz.Decision, error) {
	w.requests++
	switch info.Verb {
	case "get":
		return authz.Decision{Verdict: authz.Allow, Reason: resource.GetName() + " may get"}, nil
	case "delete":
		return authz.Decision{Verdict: authz.Deny, Reason: "never"}, nil
	case "break":
		return authz.Decision{}, errors.New("broken")
	}
	return authz.Decision{}, nil
}

func (w *world) Rules(_ context.Context, resource user.Info, namespace string) (authz.Rules, error) {
	w.requests++
	rules := authz.Rules{
		Resources:  []authorizationv1.ResourceRule{{Verbs: []string{"get"}, Resources: []string{namespace}}},
		Incomplete: true,
	}
	return rules, fmt.Errorf("not all of %s", resource.GetName())
}

func (w *world) token(_ context.Context, token string, audiences []string) (user.Info, []string, error) {
	w.requests++
	if token != "good" {
		return nil, nil, errors.New("unknown token")
	}
	if len(audiences) > 0 && audiences[0] != "here" {
		return nil, nil, errors.New("for others")
	}
	return &user.DefaultInfo{Name: "jane", UID: "u", Groups: []string{"g"}}, []string{"here"}, nil
}

func (w *world) answers() map[string]verb.Answer {
	return review.Answers(review.Config{
		Token: w.token, Authorizer: w, Ruler: w,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
}

func decode(t *testing.T, text string) object.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object.Object)
}

// TestReviews checks the answer of each review, its status as JSON, or its error.
func TestReviews(t *testing.T) {
	t.Parallel()
	const (
		token, resource = "tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io"
		access, self    = "subjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io"
		local           = "localsubjectaccessreviews.authorization.k8s.io"
		rules           = "selfsubjectrulesreviews.authorization.k8s.io"
		caller          = "caller"
	)
	for _, c := range []struct{ resource, body, want, refused string }{
		{resource, `{}`, `"userInfo":{"extra":{"k":["v"]},"groups":["staff"],"uid":"7","username":"caller"}`, ""},
		{resource, `{}`, `"creationTimestamp":"2026-01-02T03:04:05Z"`, ""},

		{token, `{spec: {token: good}}`,
			`"audiences":["here"],"authenticated":true,"user":{"groups":["g"],"uid":"u","username":"jane"}`, ""},
		{token, `{spec: {token: "good\n"}}`, `"authenticated":true`, ""},
		{token, `{spec: {token: "good more"}}`, `"authenticated":true`, ""},
		{token, `{spec: {token: " good"}}`, `"status":{"error":"unknown token","user":{}}`, ""},
		{token, `{spec: {token: good, audiences: [there]}}`, `"status":{"error":"for others","user":{}}`, ""},
		{token, `{spec: {token: bad}, status: {authenticated: true}}`, `"status":{"error":"unknown token","user":{}}`, ""},
		{token, `{spec: {token: bad}, status: {user: {username: me}}}`,
			`"status":{"error":"unknown token","user":{"username":"me"}}`, ""},
		{token, `{spec: {}}`, "", "token is required for TokenReview in authentication"},

		{access, `{spec: {user: bob, resourceAttributes: {verb: get}}}`,
			`"status":{"allowed":true,"reason":"bob may get"}`, ""},
		{access, `{spec: {user: bob, resourceAttributes: {verb: delete}}}`,
			`"status":{"allowed":false,"denied":true,"reason":"never"}`, ""},
		{access, `{spec: {groups: [g], nonResourceAttributes: {verb: break, path: /x}}}`,
			`"status":{"allowed":false,"evaluationError":"broken"}`, ""},
		{access, `{spec: {resourceAttributes: {verb: get}}}`, "", "at least one of user or group must be specified"},
		{access, `{spec: {user: bob}}`, "",
			"spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"},
		{access, `{spec: {user: bob, resourceAttributes: {}, nonResourceAttributes: {}}}`, "",
			`spec: Invalid value: {"Path":"","Verb":""}: exactly one of nonResourceAttributes or ` +
				`resourceAttributes must be specified`},
		{access, `{metadata: {name: x}, spec: {user: bob, resourceAttributes: {verb: get}}}`, "", "must be empty"},
		{access, `{spec: {user: bob, resourceAttributes: {fieldSelector: {}}}}`, "",
			"when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"},
		{access, `{spec: {user: bob, resourceAttributes: {labelSelector: {rawSelector: a, requirements: [
			{key: a, operator: Exists}]}}}}`, "", "may not specified at the same time as requirements"},

		{local, `{metadata: {namespace: shop}, spec: {user: bob, resourceAttributes: {namespace: shop, verb: get}}}`,
			`"status":{"allowed":true,"reason":"bob may get"}`, ""},
		{local, `{metadata: {namespace: shop}, spec: {user: bob, resourceAttributes: {namespace: other, verb: get}}}`, "",
			"must match metadata.namespace"},
		{local, `{metadata: {namespace: shop}, spec: {user: bob, nonResourceAttributes: {path: /x, verb: get}}}`, "",
			"disallowed on this kind of request"},
		{local, `{metadata: {namespace: shop, name: x}, spec: {user: bob, resourceAttributes: {namespace: shop}}}`, "",
			"must be empty except for namespace"},

		{self, `{spec: {resourceAttributes: {verb: get}}}`, `"status":{"allowed":true,"reason":"caller may get"}`, ""},
		{self, `{spec: {nonResourceAttributes: {verb: list, path: /x}}}`, `"status":{"allowed":false}`, ""},
		{self, `{spec: {}}`, "", "exactly one of nonResourceAttributes or resourceAttributes must be specified"},

		{rules, `{spec: {namespace: shop}}`, `"status":{"evaluationError":"not all of caller","incomplete":true,` +
			`"nonResourceRules":[],"resourceRules":[{"resources":["shop"],"verbs":["get"]}]}`, ""},
		{rules, `{spec: {}}`, "", "no namespace on request"},
	} {
		w := &world{}
		call := &verb.Call{User: &user.DefaultInfo{
			Name: caller, UID: "7", Groups: []string{"staff"}, Extra: map[string][]string{"k": {"v"}},
		}}
		pass := func(object.Object) error { return nil }
		out, err := w.answers()[c.resource](t.Context(), call, decode(t, c.body), pass)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) || w.requests != 0 {
				t.Errorf("%s %s: %v after %d questions, want %s", c.resource, c.body, err, w.requests, c.refused)
			}
		case err != nil:
			t.Errorf("%s %s: %v", c.resource, c.body, err)
		default:
			if got := string(codec.AppendJSON(nil, out)); !strings.Contains(got, c.want) {
				t.Errorf("%s %s:\ngot  %s\nwant %s", c.resource, c.body, got, c.want)
			}
		}
	}
}

// TestAdmissionComesFirst checks that a review rejected by admission is not answered.
func TestAdmissionComesFirst(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"selfsubjectreviews.authentication.k8s.io":      `{}`,
		"tokenreviews.authentication.k8s.io":            `{spec: {token: good}}`,
		"subjectaccessreviews.authorization.k8s.io":     `{spec: {user: bob, resourceAttributes: {verb: get}}}`,
		"selfsubjectaccessreviews.authorization.k8s.io": `{spec: {resourceAttributes: {verb: get}}}`,
		"selfsubjectrulesreviews.authorization.k8s.io":  `{spec: {namespace: shop}}`,
		"localsubjectaccessreviews.authorization.k8s.io": `{metadata: {namespace: shop}, spec: {user: bob,
			resourceAttributes: {namespace: shop, verb: get}}}`,
	}
	refusal := errors.New("refused")
	for resource, body := range bodies {
		w := &world{}
		call := &verb.Call{User: &user.DefaultInfo{Name: "caller"}}
		_, err := w.answers()[resource](t.Context(), call, decode(t, body),
			func(object.Object) error { return refusal })
		if !errors.Is(err, refusal) || w.requests != 0 {
			t.Errorf("%s: %v after %d questions", resource, err, w.requests)
		}
	}
}
