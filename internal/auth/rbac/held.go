package rbac

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// Held returns a user's rules in a namespace: cluster-wide rules first, ordered by the names of their bindings; with
// the namespace "" only the cluster-wide ones. missing lists nonexistent roles in the user's bindings. The rules are
// read only.
func (e *Evaluator) Held(u user.Info, namespace string) (rules []rbacv1.PolicyRule, missing []rbacv1.RoleRef) {
	p := e.now()
	for _, b := range p.bindingsOf(u, namespace) {
		if r := p.roleOf(b); r != nil {
			rules = append(rules, r.rules...)
		} else {
			missing = append(missing, b.ref)
		}
	}
	return rules, missing
}

func (p *policy) bindingsOf(u user.Info, namespace string) []*binding {
	var found []*binding
	collect := func(k subjectKey) {
		if g, ok := p.grants.get(p.hashKey(k), k); ok {
			found = append(found, g.list...)
		}
	}
	scopes := []string{""}
	if namespace != "" {
		scopes = append(scopes, namespace)
	}
	for _, scope := range scopes {
		collect(subjectKey{scope, u.GetName(), false})
		for _, group := range u.GetGroups() {
			collect(subjectKey{scope, group, true})
		}
	}
	return ordered(found)
}

// RoleRules returns the rules of the role in a binding of a namespace, or in a cluster-wide one if the namespace is "".
// The rules are read only.
func (e *Evaluator) RoleRules(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, found bool) {
	p := e.now()
	r := p.roleOf(p.compile(&Change{Namespace: namespace, RoleRef: ref}))
	if r == nil {
		return nil, false
	}
	return r.rules, true
}

// Rules implements authz.Ruler. The error lists the user's bindings with nonexistent roles.
func (e *Evaluator) Rules(_ context.Context, u user.Info, namespace string) (authz.Rules, error) {
	held, missing := e.Held(u, namespace)
	var out authz.Rules
	for _, r := range held {
		if len(r.Resources) > 0 {
			out.Resources = append(out.Resources, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			out.NonResources = append(out.NonResources, authorizationv1.NonResourceRule{
				Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs,
			})
		}
	}
	return out, missingRoles(missing)
}
