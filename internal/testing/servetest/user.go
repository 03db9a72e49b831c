package servetest

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// ByName authenticates by the header Test-User: root is a master, "" is anonymous, wrong is refused.
type ByName struct{}

// Authenticate implements chain.Authenticator.
func (ByName) Authenticate(r *http.Request) (user.Info, error) {
	switch name := r.Header.Get("Test-User"); name {
	case "wrong":
		return nil, errors.New("wrong proof")
	case "":
		return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, nil
	case "root":
		return root, nil
	default:
		return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}, nil
	}
}

var root = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

// Everything lets every user do everything.
type Everything struct{}

// Authorize implements authz.Authorizer.
func (Everything) Authorize(context.Context, user.Info, *request.Info) (authz.Decision, error) {
	return authz.Decision{Verdict: authz.Allow}, nil
}
