// Package abac authorizes requests by the policies in a file, like Kubernetes' authorization mode ABAC.
//
// It is one of the modes of authz.Union. The file is read once, at the start. Policies are safe for concurrent use.
package abac

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Policies are evaluated in order; the first match allows the request.
type Policies []spec

// spec is the content of a policy. "*" matches everything; an empty field matches only an empty value.
type spec struct {
	User, Group                   string // at least one is required; if both are set, both must match
	Readonly                      bool   // allows only get, list and watch
	APIGroup, Resource, Namespace string
	NonResourcePath               string // may end in *
}

var _ authz.Mode = Policies(nil)

// Authorize implements authz.Authorizer.
func (p Policies) Authorize(_ context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	for i := range p {
		if p[i].isAbout(u) && p[i].allows(info) {
			return authz.Decision{Verdict: authz.Allow}, nil
		}
	}
	return authz.Decision{Reason: "No policy matched."}, nil
}

// Rules implements authz.Ruler.
func (p Policies) Rules(_ context.Context, u user.Info, namespace string) (authz.Rules, error) {
	var rules authz.Rules
	for i := range p {
		s := &p[i]
		if !s.isAbout(u) || s.Namespace != "*" && s.Namespace != namespace {
			continue
		}
		verbs := []string{"*"}
		if s.Readonly {
			verbs = []string{"get", "list", "watch"}
		}
		if s.Resource != "" {
			rules.Resources = append(rules.Resources, authorizationv1.ResourceRule{
				Verbs: verbs, APIGroups: []string{s.APIGroup}, Resources: []string{s.Resource},
			})
		}
		if s.NonResourcePath != "" {
			rules.NonResources = append(rules.NonResources, authorizationv1.NonResourceRule{
				Verbs: verbs, NonResourceURLs: []string{s.NonResourcePath},
			})
		}
	}
	return rules, nil
}

func (s *spec) isAbout(u user.Info) bool {
	if s.User == "" && s.Group == "" {
		return false
	}
	return (s.User == "" || s.User == "*" || s.User == u.GetName()) &&
		(s.Group == "" || s.Group == "*" || slices.Contains(u.GetGroups(), s.Group))
}

func (s *spec) allows(info *request.Info) bool {
	if s.Readonly && info.Verb != "get" && info.Verb != "list" && info.Verb != "watch" {
		return false
	}
	is := func(pattern, value string) bool { return pattern == "*" || pattern == value }
	if info.IsResource {
		return is(s.Namespace, info.Namespace) && is(s.Resource, info.Resource) && is(s.APIGroup, info.Group)
	}
	return is(s.NonResourcePath, info.Path) || strings.HasSuffix(s.NonResourcePath, "*") &&
		strings.HasPrefix(info.Path, strings.TrimRight(s.NonResourcePath, "*"))
}
