// Package authz decides whether a user may do what a request asks for.
//
// It stands between authentication and the verbs: package front asks an Authorizer once per request, and once per
// property for impersonation. A refusal is a 403 whose message says who wanted what, word for word as Kubernetes says it.
//
// Basic is the Authorizer until roles are served. Authorizers are safe for concurrent use.
package authz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Basic allows everything to system:masters, health and version to everybody, and discovery and the OpenAPI documents to
// those who are authenticated: what the roles system:public-info-viewer and system:discovery of Kubernetes allow.
type Basic struct{}

var _ Authorizer = Basic{}

// Authorize implements Authorizer.
func (Basic) Authorize(_ context.Context, who user.Info, what *request.Info) (Decision, error) {
	groups := who.GetGroups()
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		return Decision{Allowed: true}, nil
	}
	if what.IsResource || what.Verb != "get" {
		return Decision{}, nil
	}
	known := slices.Contains(groups, user.AllAuthenticated)
	if !known && !slices.Contains(groups, user.AllUnauthenticated) {
		return Decision{}, nil
	}
	switch what.Path {
	case "/healthz", "/livez", "/readyz", "/version", "/version/":
		return Decision{Allowed: true}, nil
	case "/api", "/apis", "/openapi":
		return Decision{Allowed: known}, nil
	}
	discovery := strings.HasPrefix(what.Path, "/api/") || strings.HasPrefix(what.Path, "/apis/") || strings.HasPrefix(what.Path, "/openapi/")
	return Decision{Allowed: known && discovery}, nil
}

// Forbidden returns the 403 for a request that was refused. reason may be empty.
func Forbidden(who user.Info, what *request.Info, reason string) *apierrors.StatusError {
	text := sanitize.Replace(refusal(who.GetName(), what))
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: what.Group, Resource: what.Resource}, what.Name, errors.New(text))
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
		return fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", name, what.Verb, resource, what.Group, what.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", name, what.Verb, resource, what.Group)
}
