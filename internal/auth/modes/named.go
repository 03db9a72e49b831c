package modes

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// named is a mode with its name in the configuration. A refusal has the reasons of all modes; since Kubernetes 1.37 the
// name of the mode stands before each.
type named struct {
	authz.Mode
	name string
}

// Authorize implements authz.Authorizer.
func (n named) Authorize(ctx context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	d, err := n.Mode.Authorize(ctx, u, info)
	if d.Verdict == authz.NoOpinion && d.Reason != "" {
		d.Reason = n.name + ": " + d.Reason
	}
	return d, err
}
