// Package escalation prevents users from granting permissions that they do not have.
//
// It runs between admission and validation of a write, as guards of the verbs (verb.Guard). To write a role, a user
// needs all of its permissions, or the verb escalate. To write a binding, a user needs all permissions of the role, or
// the verb bind. Members of system:masters may do both. The rules and texts are Kubernetes'
// (k8s.io/kubernetes/pkg/registry/rbac); the tables in the tests check them.
//
// A Checker is safe for concurrent use.
package escalation

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part brings the guards of roles and bindings.
func Part() part.Part {
	return part.Part{Name: "escalation", Handlers: func(h *part.Host) part.Handlers {
		c := &Checker{Authorizer: h.Authorizer, Roles: h.Roles, Fresh: func(ctx context.Context) error {
			_, err := h.View.Fresh(ctx)
			return err
		}}
		const group = "." + rbacv1.GroupName
		return part.Handlers{Guards: map[string]verb.Guard{
			"roles" + group:               guardRole(c),
			"clusterroles" + group:        guardClusterRole(c),
			"rolebindings" + group:        guardRoleBinding(c),
			"clusterrolebindings" + group: guardClusterRoleBinding(c),
		}}
	}}
}

// Checker decides whether a user may grant permissions.
type Checker struct {
	Authorizer authz.Authorizer
	Roles      *rbac.Evaluator
	// Fresh waits until Roles includes the completed writes of other servers.
	Fresh func(context.Context) error
}

// Request is the write to check.
type Request struct {
	User     user.Info
	Resource string // "roles", "clusterroles", "rolebindings" or "clusterrolebindings"
	// Namespace and Name are the request's; a POST has no name.
	Namespace, Name string
}

// Role returns nil if the user may write a role with these rules and name, and otherwise a 403. aggregates is true if
// the role has an aggregation rule before or after the write.
func (c *Checker) Role(
	ctx context.Context, r Request, name string, rules []rbacv1.PolicyRule, aggregates bool,
) error {
	if master(r.User) || c.allowed(ctx, r, "escalate", r.Resource, r.Name) {
		return nil
	}
	if err := c.Fresh(ctx); err != nil {
		return err
	}
	if err := c.confirm(ctx, r, rules); err != nil {
		return refused(ctx, r, name, err)
	}
	// An aggregation rule can collect anything, so it requires all permissions.
	if aggregates && c.confirm(ctx, r, everything) != nil {
		return apierrors.NewForbidden(rbacv1.Resource(r.Resource), name,
			errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Binding returns nil if the user may write a binding with this name to the role ref, and otherwise a 403. If the
// decision depends on a missing role, the error is a 404 about the resource of the request, as in Kubernetes. It is a
// 400 if ref cannot name a role.
func (c *Checker) Binding(ctx context.Context, r Request, name string, ref rbacv1.RoleRef) error {
	if master(r.User) {
		return nil
	}
	resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[ref.Kind]
	if resource != "" && c.allowed(ctx, r, "bind", resource, ref.Name) {
		return nil
	}
	if err := c.Fresh(ctx); err != nil {
		return err
	}
	rules, found := c.Roles.RoleRules(ref, r.Namespace)
	switch {
	case !found && ref.Kind == "Role" && r.Namespace == "":
		return apierrors.NewBadRequest("Namespace parameter required.")
	case !found:
		return rbac.NotFound(ref, r.Resource)
	}
	if err := c.confirm(ctx, r, rules); err != nil {
		return refused(ctx, r, name, err)
	}
	return nil
}

// refused returns a 403 with an error of confirm, or the error of ctx.
func refused(ctx context.Context, r Request, name string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return apierrors.NewForbidden(rbacv1.Resource(r.Resource), name, err)
}

// master reports whether a user is in system:masters, which may do everything.
func master(u user.Info) bool { return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) }

func (c *Checker) allowed(ctx context.Context, r Request, verb, resource, name string) bool {
	d, _ := c.Authorizer.Authorize(ctx, r.User, &request.Info{
		IsResource: true, Verb: verb, Group: rbacv1.GroupName, Version: "*", Resource: resource,
		Namespace: r.Namespace, Name: name,
	})
	return d.Allowed()
}

// requestOf returns the Request of a call.
func requestOf(c *verb.Call) Request {
	return Request{User: c.User, Resource: c.Resource.Plural, Namespace: c.Namespace, Name: c.Name}
}

func guardRole(check *Checker) verb.Guard {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) error {
		now, before, err := read[rbacv1.Role](obj, old)
		if err != nil || before != nil && collectable(now, before) {
			return err
		}
		return check.Role(ctx, requestOf(c), now.Name, now.Rules, false)
	}
}

func guardClusterRole(check *Checker) verb.Guard {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) error {
		now, before, err := read[rbacv1.ClusterRole](obj, old)
		if err != nil || before != nil && collectable(now, before) {
			return err
		}
		return check.Role(ctx, requestOf(c), now.Name, now.Rules, gathers(now) || before != nil && gathers(before))
	}
}

func gathers(r *rbacv1.ClusterRole) bool {
	return r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func guardRoleBinding(check *Checker) verb.Guard {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) error {
		now, before, err := read[rbacv1.RoleBinding](obj, old)
		if err != nil || before != nil && collectable(now, before) {
			return err
		}
		return check.Binding(ctx, requestOf(c), now.Name, now.RoleRef)
	}
}

func guardClusterRoleBinding(check *Checker) verb.Guard {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) error {
		now, before, err := read[rbacv1.ClusterRoleBinding](obj, old)
		if err != nil || before != nil && collectable(now, before) {
			return err
		}
		return check.Binding(ctx, requestOf(c), now.Name, now.RoleRef)
	}
}

// read decodes an object and its former state, which may be nil.
func read[T any](obj, old object.Object) (now, before *T, err error) {
	now = new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, now); err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	if old == nil {
		return now, nil, nil
	}
	before = new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old, before); err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	return now, before, nil
}

// collectable reports whether an update changes only the fields that the garbage collector changes to release the
// object.
func collectable[T any, P interface {
	*T
	metav1.Object
}](now, before P) bool {
	was := metav1.ObjectMeta{
		OwnerReferences: now.GetOwnerReferences(), Finalizers: now.GetFinalizers(),
		ManagedFields: now.GetManagedFields(),
	}
	link := now.GetSelfLink()
	defer func() {
		now.SetOwnerReferences(was.OwnerReferences)
		now.SetFinalizers(was.Finalizers)
		now.SetManagedFields(was.ManagedFields)
		now.SetSelfLink(link)
	}()
	now.SetOwnerReferences(before.GetOwnerReferences())
	now.SetFinalizers(before.GetFinalizers())
	now.SetManagedFields(before.GetManagedFields())
	now.SetSelfLink(before.GetSelfLink())
	return equality.Semantic.DeepEqual(now, before)
}
