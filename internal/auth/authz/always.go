package authz

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// AlwaysAllow allows everything to every user. A server that uses it refuses anonymous requests.
type AlwaysAllow struct{}

var (
	_ Authorizer = AlwaysAllow{}
	_ Ruler      = AlwaysAllow{}
)

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return Decision{Allowed: true}, nil
}

// Rules implements Ruler.
func (AlwaysAllow) Rules(context.Context, user.Info, string) (Rules, error) { return everything(), nil }

func everything() Rules {
	all := []string{"*"}
	return Rules{
		Resources:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResources: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}
