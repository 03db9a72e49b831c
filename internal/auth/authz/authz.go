// Package authz decides whether a user may do what a request asks for.
//
// It stands between authentication and the verbs: package front asks an Authorizer once per request, and once per
// property for impersonation. A refusal is a 403 whose message says who wanted what, word for word as Kubernetes says
// it.
//
// Basic is the Authorizer until roles are served, AlwaysAllow kube's mode of that name. Authorizers are safe for
// concurrent use.
package authz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Authorizer decides about requests.
type Authorizer interface {
	// Authorize decides whether who may do what. what is read only; it may be made by hand (a review, an impersonation)
	// and then has no Path and no Parts. An error means that it could not be decided: a 500 unless the decision allows.
	Authorize(ctx context.Context, who user.Info, what *request.Info) (Decision, error)
}

// Decision is the answer of an Authorizer. The zero value refuses.
type Decision struct {
	Allowed bool
	Reason  string // for the client and the audit log; may be empty
}

// Ruler lists what a user may do in a namespace. An Authorizer that cannot list all it allows says so.
type Ruler interface {
	Rules(ctx context.Context, who user.Info, namespace string) (Rules, error)
}

// Rules are what a user may do.
type Rules struct {
	Resources    []authorizationv1.ResourceRule
	NonResources []authorizationv1.NonResourceRule
	Incomplete   bool
}

// Basic allows everything to system:masters, health and version to everybody, and discovery and the OpenAPI documents
// to those who are authenticated, who may also ask what they may: what the roles system:public-info-viewer,
// system:discovery, system:basic-user and system:service-account-issuer-discovery of Kubernetes allow.
type Basic struct{}

var (
	_ Authorizer = Basic{}
	_ Ruler      = Basic{}
)

// Authorize implements Authorizer.
func (Basic) Authorize(_ context.Context, who user.Info, what *request.Info) (Decision, error) {
	groups := who.GetGroups()
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		return Decision{Allowed: true}, nil
	}
	known := slices.Contains(groups, user.AllAuthenticated)
	if what.IsResource {
		return Decision{Allowed: known && aboutOneself(what)}, nil
	}
	if what.Verb != "get" {
		return Decision{}, nil
	}
	if !known && !slices.Contains(groups, user.AllUnauthenticated) {
		return Decision{}, nil
	}
	switch what.Path {
	case "/healthz", "/livez", "/readyz", "/version", "/version/":
		return Decision{Allowed: true}, nil
	case "/api", "/apis", "/openapi":
		return Decision{Allowed: known}, nil
	case "/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks",
		"/openid/v1/jwks/":
		return Decision{Allowed: slices.Contains(groups, serviceaccount.AllServiceAccountsGroup)}, nil
	}
	discovery := strings.HasPrefix(what.Path, "/api/") || strings.HasPrefix(what.Path, "/apis/") ||
		strings.HasPrefix(what.Path, "/openapi/")
	return Decision{Allowed: known && discovery}, nil
}

// aboutOneself reports whether a request asks who the caller is and what the caller may, as the role system:basic-user
// allows.
func aboutOneself(what *request.Info) bool {
	if what.Verb != "create" || what.Subresource != "" {
		return false
	}
	switch what.Group {
	case "authentication.k8s.io":
		return what.Resource == "selfsubjectreviews"
	case "authorization.k8s.io":
		return what.Resource == "selfsubjectaccessreviews" || what.Resource == "selfsubjectrulesreviews"
	}
	return false
}

// Rules implements Ruler.
func (Basic) Rules(_ context.Context, who user.Info, _ string) (Rules, error) {
	groups := who.GetGroups()
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		return everything(), nil
	}
	public := []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
	if !slices.Contains(groups, user.AllAuthenticated) {
		return Rules{
			NonResources: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: public}},
		}, nil
	}
	known := append(public, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
	if slices.Contains(groups, serviceaccount.AllServiceAccountsGroup) {
		known = append(known, "/.well-known/openid-configuration", "/.well-known/openid-configuration/",
			"/openid/v1/jwks", "/openid/v1/jwks/")
	}
	create := []string{"create"}
	return Rules{
		Resources: []authorizationv1.ResourceRule{
			{Verbs: create, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}},
			{
				Verbs: create, APIGroups: []string{"authorization.k8s.io"},
				Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
			},
		},
		NonResources: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: known}},
	}, nil
}

// Require returns nil if a allows who to do what, a 403 if it does not, and a 500 if that cannot be decided.
func Require(ctx context.Context, a Authorizer, who user.Info, what *request.Info) error {
	decision, err := a.Authorize(ctx, who, what)
	switch {
	case decision.Allowed:
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
