package authz

import (
	"context"
	"errors"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// fixed is a mode with a fixed decision.
type fixed struct {
	Decision
	err   error
	rules Rules
}

func (s fixed) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return s.Decision, s.err
}

func (s fixed) Rules(context.Context, user.Info, string) (Rules, error) { return s.rules, s.err }

func TestUnion(t *testing.T) {
	t.Parallel()
	var (
		silent = fixed{}
		yes    = fixed{Decision: Decision{Allow, "because"}}
		no     = fixed{Decision: Decision{Deny, "never"}, err: errors.New("half")}
		unsure = fixed{Decision: Decision{NoOpinion, "who knows"}, err: errors.New("asleep")}
	)
	for _, tc := range []struct {
		name string
		u    Union
		user user.Info
		want Decision
		err  string
	}{
		{"none", nil, bob, Decision{}, ""},
		{"master", Union{no}, master, Decision{Verdict: Allow}, ""},
		{"silent", Union{silent, silent}, bob, Decision{}, ""},
		{"first decides", Union{silent, yes, no}, bob, Decision{Allow, "because"}, ""},
		{"deny is final", Union{unsure, no, yes}, bob, Decision{Deny, "never"}, "half"},
		{"allowed after an error", Union{unsure, yes}, bob, Decision{Allow, "because"}, ""},
		{"AlwaysDeny has no opinion", Union{AlwaysDeny{}, yes}, bob, Decision{Allow, "because"}, ""},
		{"reasons and errors of all", Union{unsure, silent, AlwaysDeny{}, unsure}, bob,
			Decision{NoOpinion, "who knows\nEverything is forbidden.\nwho knows"}, "asleep"},
	} {
		d, err := tc.u.Authorize(t.Context(), tc.user, info(t, "GET", "/x"))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if d != tc.want || text != tc.err {
			t.Errorf("%s: %+v, %q; want %+v, %q", tc.name, d, text, tc.want, tc.err)
		}
	}
}

func TestUnionRules(t *testing.T) {
	t.Parallel()
	rule := func(verb string) Rules {
		return Rules{Resources: []authorizationv1.ResourceRule{{Verbs: []string{verb}}}}
	}
	second := rule("list")
	second.Incomplete = true
	got, err := Union{
		fixed{rules: rule("get")}, AlwaysDeny{}, fixed{rules: second, err: errors.New("not all")},
	}.Rules(t.Context(), bob, "default")
	if err == nil || err.Error() != "not all" || !got.Incomplete || len(got.Resources) != 2 ||
		!slices.Equal(got.Resources[1].Verbs, []string{"list"}) {
		t.Errorf("%+v, %v", got, err)
	}
}
