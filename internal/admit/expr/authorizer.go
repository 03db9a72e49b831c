package expr

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Authorizer provides the variables authorizer and authorizer.requestResource for one write. It caches decisions.
type Authorizer struct {
	Authz authz.Authorizer
	User  user.Info
	// Resource, Subresource, Namespace and Name are the request's.
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string

	answers map[string]answer
}

type answer struct {
	decision authz.Decision
	err      error
}

var _ library.Resource = (*check)(nil)

func (a *Authorizer) value() ref.Val { return library.NewAuthorizerVal(a.User, a.function()) }

func (a *Authorizer) resource() ref.Val {
	return library.NewResourceAuthorizerVal(a.User, a.function(), (*check)(a))
}

// function returns a as the library's type. It is a function because the interface gains methods with new versions of
// the library (0.37 added two, for conditional decisions), which its own AuthorizerFunc then has.
func (a *Authorizer) function() authorizer.AuthorizerFunc { return a.Authorize }

// check adapts the resource of the request to the library's interface.
type check Authorizer

func (a *check) GetName() string                          { return a.Name }
func (a *check) GetNamespace() string                     { return a.Namespace }
func (a *check) GetResource() schema.GroupVersionResource { return a.asResource() }
func (a *check) GetSubresource() string                   { return a.Subresource }

func (a *check) asResource() schema.GroupVersionResource { return (*Authorizer)(a).Resource }

// Authorize forwards the library's request to our authorizer. It omits a selector that cannot be parsed, which makes
// the request broader.
func (a *Authorizer) Authorize(ctx context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
	info := &request.Info{
		Verb: q.GetVerb(), IsResource: q.IsResourceRequest(), Path: q.GetPath(), APIPrefix: "apis",
		Group: q.GetAPIGroup(), Version: q.GetAPIVersion(),
		Namespace: q.GetNamespace(), Resource: q.GetResource(), Subresource: q.GetSubresource(), Name: q.GetName(),
	}
	if info.IsResource && info.Group == "" {
		info.APIPrefix = "api"
	}
	if terms, err := q.GetFieldSelector(); err == nil && len(terms) > 0 {
		info.FieldSelector = fieldText(terms)
	}
	if terms, err := q.GetLabelSelector(); err == nil && len(terms) > 0 {
		info.LabelSelector = labels.NewSelector().Add(terms...).String()
	}
	u := q.GetUser()
	groups := slices.Sorted(slices.Values(u.GetGroups()))
	key := fmt.Sprintf("%q %q %q %q %+v", u.GetName(), u.GetUID(), groups, u.GetExtra(), *info)
	found, ok := a.answers[key]
	if !ok {
		found.decision, found.err = a.Authz.Authorize(ctx, u, info)
		if a.answers == nil {
			a.answers = map[string]answer{}
		}
		a.answers[key] = found
	}
	decision := authorizer.DecisionNoOpinion
	switch found.decision.Verdict {
	case authz.Allow:
		decision = authorizer.DecisionAllow
	case authz.Deny:
		decision = authorizer.DecisionDeny
	}
	return decision, found.decision.Reason, found.err
}

func fieldText(terms fields.Requirements) string {
	all := make([]fields.Selector, len(terms))
	for i, t := range terms {
		if t.Operator == selection.NotEquals {
			all[i] = fields.OneTermNotEqualSelector(t.Field, t.Value)
		} else {
			all[i] = fields.OneTermEqualSelector(t.Field, t.Value)
		}
	}
	return fields.AndSelectors(all...).String()
}
