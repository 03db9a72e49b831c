// Package authz authorizes requests.
//
// It runs between authentication and the verbs: package front calls an Authorizer once for each request, and once for
// each property of an impersonation. A refusal is a 403 with the user and the request in its message, word for word as
// in Kubernetes.
//
// A server uses a Union of the configured Modes. AlwaysAllow and AlwaysDeny are the modes with these names; package
// rbac implements the mode for roles. Authorizers are safe for concurrent use.
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
	// Authorize decides whether u may make the request. info is read only; it may be constructed (for a review or an
	// impersonation) and then has no Path and no Parts. An error means that something could not be decided. The
	// decision still counts: if it allows the request, the request is allowed; otherwise the response is a 500.
	Authorize(ctx context.Context, u user.Info, info *request.Info) (Decision, error)
}

// Decision is the result of an Authorizer. The zero value has no opinion and no reason.
type Decision struct {
	Verdict Verdict
	Reason  string // for the client and the audit log; may be empty
}

// Allowed reports whether d allows the request.
func (d Decision) Allowed() bool { return d.Verdict == Allow }

// Verdict is an Authorizer's verdict on a request.
type Verdict int

// The verdicts. Allow and Deny are final: no later Authorizer is called. A request without a verdict is refused.
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

// Ruler lists a user's permissions in a namespace. An Authorizer that cannot list all of them marks the list as
// incomplete.
type Ruler interface {
	Rules(ctx context.Context, u user.Info, namespace string) (Rules, error)
}

// Viewer returns the objects of a resource that a user may see, for a list or watch with visible=true. Names in info
// have no effect.
type Viewer interface {
	Visible(u user.Info, info *request.Info) request.Visibility
}

// Rules lists a user's permissions.
type Rules struct {
	Resources    []authorizationv1.ResourceRule
	NonResources []authorizationv1.NonResourceRule
	Incomplete   bool
}

// Require returns nil if a allows the request, a 403 if it does not, and a 500 if it cannot decide.
func Require(ctx context.Context, a Authorizer, u user.Info, info *request.Info) error {
	decision, err := a.Authorize(ctx, u, info)
	return Refusal(u, info, decision, err)
}

// Refusal returns the error for a decision: nil if it allows the request, a 403 if it does not, a 500 after an error.
func Refusal(u user.Info, info *request.Info, decision Decision, err error) error {
	switch {
	case decision.Allowed():
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return Forbidden(u, info, decision.Reason)
}

// Forbidden returns the 403 for a request that was refused. reason may be empty.
func Forbidden(u user.Info, info *request.Info, reason string) *apierrors.StatusError {
	text := sanitize.Replace(refusal(u.GetName(), info))
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: info.Group, Resource: info.Resource}, info.Name,
		errors.New(text))
}

// sanitize keeps browsers from reading names in the message as HTML.
var sanitize = strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;")

func refusal(name string, info *request.Info) string {
	if !info.IsResource {
		return fmt.Sprintf("User %q cannot %s path %q", name, info.Verb, info.Path)
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	if info.Namespace != "" {
		return fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", name, info.Verb,
			resource, info.Group, info.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", name, info.Verb, resource,
		info.Group)
}
