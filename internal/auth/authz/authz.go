// Package authz decides whether a user may do what a request asks for.
//
// It stands between authentication and the verbs: package front asks an Authorizer once per request, and once per
// property for impersonation. A refusal is a 403 whose message says who wanted what, word for word as Kubernetes says
// it.
//
// What a server asks is a Union of the Modes that its configuration names; AlwaysAllow and AlwaysDeny are those of
// these names, package rbac has that of roles. Authorizers are safe for concurrent use.
package authz

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Authorizer decides about requests.
type Authorizer interface {
	// Authorize decides whether who may do what. what is read only; it may be made by hand (a review, an impersonation)
	// and then has no Path and no Parts. An error means that something could not be decided; the decision beside it
	// counts all the same: what it allows is allowed, anything else is a 500.
	Authorize(ctx context.Context, who user.Info, what *request.Info) (Decision, error)
}

// Decision is the answer of an Authorizer. The zero value has no opinion and gives no reason.
type Decision struct {
	Verdict Verdict
	Reason  string // for the client and the audit log; may be empty
}

// Allowed reports whether d allows the request.
func (d Decision) Allowed() bool { return d.Verdict == Allow }

// Verdict is what an Authorizer says of a request.
type Verdict int

// The verdicts. Allow and Deny are final: no Authorizer after this one is asked. A request about which none has an
// opinion is refused.
const (
	NoOpinion Verdict = iota
	Allow
	Deny
)

// allowIf returns a decision without a reason that allows if ok is true and has no opinion otherwise.
func allowIf(ok bool) Decision {
	if ok {
		return Decision{Verdict: Allow}
	}
	return Decision{}
}

// Ruler lists what a user may do in a namespace. An Authorizer that cannot list all it allows says so.
type Ruler interface {
	Rules(ctx context.Context, who user.Info, namespace string) (Rules, error)
}

// Viewer says what a user may see of a resource, of which a list or watch shows that alone if it asks to. what is its
// request; the names in it do not matter.
type Viewer interface {
	Visible(who user.Info, what *request.Info) request.Visibility
}

// Rules are what a user may do.
type Rules struct {
	Resources    []authorizationv1.ResourceRule
	NonResources []authorizationv1.NonResourceRule
	Incomplete   bool
}

// Require returns nil if a allows who to do what, a 403 if it does not, and a 500 if that cannot be decided.
func Require(ctx context.Context, a Authorizer, who user.Info, what *request.Info) error {
	decision, err := a.Authorize(ctx, who, what)
	return Refusal(who, what, decision, err)
}

// Refusal returns the error for what an Authorizer has said about who and what: nil if it allows it, a 403 if it does
// not, a 500 if it could not decide.
func Refusal(who user.Info, what *request.Info, decision Decision, err error) error {
	switch {
	case decision.Allowed():
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return Forbidden(who, what, decision.Reason)
}

// Forbidden returns the 403 for a request that was refused. reason may be empty.
func Forbidden(who user.Info, what *request.Info, reason string) *apierrors.StatusError {
	text := sanitize.Replace(refusal(who.GetName(), what))
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: what.Group, Resource: what.Resource}, what.Name,
		errors.New(text))
}

// sanitize keeps browsers from reading names in the message as HTML.
var sanitize = strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;")

func refusal(name string, what *request.Info) string {
	if !what.IsResource {
		return fmt.Sprintf("User %q cannot %s path %q", name, what.Verb, what.Path)
	}
	resource := what.Resource
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	if what.Namespace != "" {
		return fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", name, what.Verb,
			resource, what.Group, what.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", name, what.Verb, resource,
		what.Group)
}
