package review

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// recorder is an authorizer that records the last request.
type recorder struct{ info request.Info }

func (n *recorder) Authorize(_ context.Context, _ user.Info, info *request.Info) (authz.Decision, error) {
	n.info = *info
	return authz.Decision{}, nil
}

// TestReviewsPassSelectors checks that the authorizer gets the selectors of a review, and a broader request if the
// server does not understand them.
func TestReviewsPassSelectors(t *testing.T) {
	t.Parallel()
	type fieldTerm = metav1.FieldSelectorRequirement
	type labelTerm = metav1.LabelSelectorRequirement
	for _, c := range []struct {
		field                 *authorizationv1.FieldSelectorAttributes
		label                 *authorizationv1.LabelSelectorAttributes
		wantF, want, problems string
	}{
		{nil, nil, "", "", ""},
		{&authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=n1"},
			&authorizationv1.LabelSelectorAttributes{RawSelector: "a in (b,c)"}, "spec.nodeName=n1", "a in (b,c)", ""},
		{&authorizationv1.FieldSelectorAttributes{RawSelector: "a"},
			&authorizationv1.LabelSelectorAttributes{Requirements: []labelTerm{{Key: "d", Operator: "Later"}}}, "", "",
			"spec.resourceAttributes.fieldSelector ignored due to parse error; " +
				"spec.resourceAttributes.labelSelector ignored due to parse error"},
		{&authorizationv1.FieldSelectorAttributes{Requirements: []fieldTerm{
			{Key: "spec.nodeName", Operator: "In", Values: []string{"n,1"}},
			{Key: "metadata.name", Operator: "NotIn", Values: []string{"x"}},
			{Key: "a", Operator: "Exists"}, {Key: "b", Operator: "In", Values: []string{"1", "2"}},
		}}, &authorizationv1.LabelSelectorAttributes{Requirements: []labelTerm{
			{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "DoesNotExist"},
			{Key: "d", Operator: "Later", Values: []string{"e"}}, {Key: "/", Operator: "Exists"},
		}}, `spec.nodeName=n\,1,metadata.name!=x`, "a in (b),!c",
			"spec.resourceAttributes.fieldSelector partially ignored due to parse error; " +
				"spec.resourceAttributes.labelSelector partially ignored due to parse error"},
	} {
		n := &recorder{}
		r := Reviews{Config{Authorizer: n}}
		status := r.decide(t.Context(), query{user: &user.DefaultInfo{Name: "bob"},
			resource: &authorizationv1.ResourceAttributes{
				Verb: "list", Resource: "pods", FieldSelector: c.field, LabelSelector: c.label,
			}})
		if n.info.FieldSelector != c.wantF || n.info.LabelSelector != c.want {
			t.Errorf("%q and %q, want %q and %q", n.info.FieldSelector, n.info.LabelSelector, c.wantF, c.want)
		}
		if status.EvaluationError != c.problems {
			t.Errorf("evaluation error %q, want %q", status.EvaluationError, c.problems)
		}
	}
}
