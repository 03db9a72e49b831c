package authz

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// AlwaysAllow allows everything to every user. A server that uses it refuses anonymous requests.
type AlwaysAllow struct{}

// AlwaysDeny has no opinion on any request, with the reason that everything is forbidden. As in Kubernetes, a later
// mode may still allow the request.
type AlwaysDeny struct{}

var (
	_ Mode = AlwaysAllow{}
	_ Mode = AlwaysDeny{}
)

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return Decision{Verdict: Allow}, nil
}

// Rules implements Ruler.
func (AlwaysAllow) Rules(context.Context, user.Info, string) (Rules, error) { return everything(), nil }

// Authorize implements Authorizer.
func (AlwaysDeny) Authorize(context.Context, user.Info, *request.Info) (Decision, error) {
	return Decision{Reason: "Everything is forbidden."}, nil
}

// Rules implements Ruler.
func (AlwaysDeny) Rules(context.Context, user.Info, string) (Rules, error) { return Rules{}, nil }

func everything() Rules {
	all := []string{"*"}
	return Rules{
		Resources:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResources: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}
