package why

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Reader explains refusals to callers, from the roles and bindings that they may read.
type Reader struct {
	View       *watchcache.View
	Authorizer authz.Authorizer
}

// Explain explains to caller why the roles do not allow the request for u. It uses only roles and bindings that caller
// may list.
func (r *Reader) Explain(ctx context.Context, caller, u user.Info, info *request.Info) *Explanation {
	return Explain(r.policy(ctx, caller, info), u, info)
}

// policy returns the roles and bindings that caller may list and that can be about a request.
func (r *Reader) policy(ctx context.Context, caller user.Info, info *request.Info) *Policy {
	p := &Policy{}
	for _, resource := range []string{rbac.ClusterRolesPrefix, rbac.ClusterRoleBindingsPrefix} {
		if !r.may(ctx, caller, resource, "") {
			p.Hidden = append(p.Hidden, resource)
			continue
		}
		r.read(p, resource, "")
	}
	for _, resource := range []string{rbac.RolesPrefix, rbac.RoleBindingsPrefix} {
		switch {
		case r.may(ctx, caller, resource, ""):
			r.read(p, resource, "")
		case info.Namespace != "" && r.may(ctx, caller, resource, info.Namespace):
			p.Hidden = append(p.Hidden, resource+" of other namespaces")
			r.read(p, resource, info.Namespace)
		default:
			p.Hidden = append(p.Hidden, resource)
		}
	}
	slices.Sort(p.Hidden)
	return p
}

func (r *Reader) may(ctx context.Context, caller user.Info, resource, namespace string) bool {
	d, err := r.Authorizer.Authorize(ctx, caller, &request.Info{
		IsResource: true, Verb: "list", Group: rbacv1.GroupName, Version: "v1", Resource: resource,
		Namespace: namespace,
	})
	return err == nil && d.Allowed()
}

// read adds the objects of a resource in the view, in a namespace or in all. Unreadable objects grant nothing.
func (r *Reader) read(p *Policy, resource, namespace string) {
	r.View.Collection(resource).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		if strings.HasSuffix(resource, "bindings") {
			b := Binding{Namespace: e.Namespace, Name: e.Name}
			if json.Unmarshal(e.JSON(), &struct {
				RoleRef  *rbacv1.RoleRef
				Subjects *[]rbacv1.Subject
			}{&b.RoleRef, &b.Subjects}) == nil {
				p.Bindings = append(p.Bindings, b)
			}
			return true
		}
		role := Role{Namespace: e.Namespace, Name: e.Name}
		if json.Unmarshal(e.JSON(), &struct{ Rules *[]rbacv1.PolicyRule }{&role.Rules}) == nil {
			p.Roles = append(p.Roles, role)
		}
		return true
	})
}
