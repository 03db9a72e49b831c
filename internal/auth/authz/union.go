package authz

import (
	"context"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Mode is one of several Authorizers of a server, which lists what it would allow besides.
type Mode interface {
	Authorizer
	Ruler
}

// Union asks modes one after another until one allows or denies. If none has an opinion, the request is refused for
// the reasons of all, one a line, and the errors of all are there too. The first mode that decides gives reason and
// error alone. Members of system:masters may do everything, before any mode is asked.
type Union []Mode

var _ Mode = Union{}

// Authorize implements Authorizer.
func (u Union) Authorize(ctx context.Context, who user.Info, what *request.Info) (Decision, error) {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return Decision{Verdict: Allow}, nil
	}
	var (
		reasons []string
		errs    []error
	)
	for _, mode := range u {
		d, err := mode.Authorize(ctx, who, what)
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

// Rules implements Ruler: what any mode allows. Members of system:masters have no rules by that, as in Kubernetes,
// where a role gives them theirs.
func (u Union) Rules(ctx context.Context, who user.Info, namespace string) (Rules, error) {
	var (
		all  Rules
		errs []error
	)
	for _, mode := range u {
		r, err := mode.Rules(ctx, who, namespace)
		if err != nil {
			errs = append(errs, err)
		}
		all.Resources = append(all.Resources, r.Resources...)
		all.NonResources = append(all.NonResources, r.NonResources...)
		all.Incomplete = all.Incomplete || r.Incomplete
	}
	return all, utilerrors.NewAggregate(errs)
}
