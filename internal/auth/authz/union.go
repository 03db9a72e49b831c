package authz

import (
	"context"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Mode is one of a server's Authorizers, which can also list permissions.
type Mode interface {
	Authorizer
	Ruler
}

// Union calls modes in order until one allows or denies the request. If none has an opinion, the request is refused
// with the reasons of all, one a line, and the errors of all. If a mode decides, only its reason and error count.
// Members of system:masters may do everything; no mode is called for them.
type Union []Mode

var _ Mode = Union{}

// Authorize implements Authorizer.
func (u Union) Authorize(ctx context.Context, caller user.Info, info *request.Info) (Decision, error) {
	if slices.Contains(caller.GetGroups(), user.SystemPrivilegedGroup) {
		return Decision{Verdict: Allow}, nil
	}
	var (
		reasons []string
		errs    []error
	)
	for _, mode := range u {
		d, err := mode.Authorize(ctx, caller, info)
		if d.Verdict != NoOpinion {
			return d, err
		}
		if err != nil {
			errs = append(errs, err)
		}
		if d.Reason != "" {
			reasons = append(reasons, d.Reason)
		}
	}
	return Decision{Reason: strings.Join(reasons, "\n")}, utilerrors.NewAggregate(errs)
}

// Rules implements Ruler: the permissions from all modes. As in Kubernetes, membership in system:masters adds no rules;
// a role grants them.
func (u Union) Rules(ctx context.Context, caller user.Info, namespace string) (Rules, error) {
	var (
		all  Rules
		errs []error
	)
	for _, mode := range u {
		r, err := mode.Rules(ctx, caller, namespace)
		if err != nil {
			errs = append(errs, err)
		}
		all.Resources = append(all.Resources, r.Resources...)
		all.NonResources = append(all.NonResources, r.NonResources...)
		all.Incomplete = all.Incomplete || r.Incomplete
	}
	return all, utilerrors.NewAggregate(errs)
}
