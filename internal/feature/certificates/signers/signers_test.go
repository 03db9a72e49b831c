package signers

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// names allows a user to sign for the signers of these names.
type names []string

func (n names) Authorize(_ context.Context, _ user.Info, info *request.Info) (authz.Decision, error) {
	for _, name := range n {
		if info.Verb == "sign" && info.Resource == "signers" && info.Name == name {
			return authz.Decision{Verdict: authz.Allow}, nil
		}
	}
	return authz.Decision{}, nil
}

func TestLimit(t *testing.T) {
	t.Parallel()
	old := object.Object{"spec": object.Object{"signerName": "example.com/own"}, "status": object.Object{}}
	changed := object.Object{"spec": object.Object{"signerName": "example.com/own"},
		"status": object.Object{"conditions": []any{object.Object{"type": "Denied"}}}}
	for _, test := range []struct {
		name  string
		may   names
		obj   object.Object
		wants string
	}{
		{"the signer", names{"example.com/own"}, changed, ""},
		{"all of its domain", names{"example.com/*"}, changed, ""},
		{"another", names{"example.com/other"}, changed,
			`spec.signerName: Forbidden: User "jane" is not permitted to "sign" for signer "example.com/own"`},
		{"nothing changes", nil, old, ""},
	} {
		call := &verb.Call{User: &user.DefaultInfo{Name: "jane"}}
		got := ""
		if errs := Limit(test.may)(t.Context(), call, test.obj, old); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != test.wants {
			t.Errorf("%s: %q, want %q", test.name, got, test.wants)
		}
	}
	if errs := Limit(names{})(t.Context(), &verb.Call{}, changed, old); len(errs) > 0 {
		t.Errorf("the server itself: %v", errs)
	}
}
