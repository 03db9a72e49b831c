// Package escalation keeps users from giving rights that they do not have.
//
// It stands between admission and validation of a write, as guards of the verbs (verb.Guard): who writes a role needs
// every permission in it, or the verb escalate; who writes a binding needs those of the role that it names, or the verb
// bind. Members of system:masters may do both. The rules and the texts are those of Kubernetes
// (k8s.io/kubernetes/pkg/registry/rbac), held by the tables of the tests.
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

// Checker decides whether a user may give rights.
type Checker struct {
	Authorizer authz.Authorizer
	Roles      *rbac.Evaluator
	// Fresh waits until Roles knows what other servers have written before.
	Fresh func(context.Context) error
}

// Request is the write that is asked about.
type Request struct {
	User     user.Info
	Resource string // what is written: "roles", "clusterroles", "rolebindings", "clusterrolebindings"
	// Namespace and Name are those of the request; a POST has no name.
	Namespace, Name string
}

// Role returns nil if the user may write a role of these rules, which is called name, and a 403 if not. aggregates is
// true if it gathers the rules of others, or did.
func (c *Checker) Role(
	ctx context.Context, r Request, name string, rules []rbacv1.PolicyRule, aggregates bool,
) error {
	if master(r.User) || c.allowed(ctx, r, "escalate", r.Resource, r.Name) {
		return nil
	}
	if err := c.Fresh(ctx); err != nil {
		return err
	}
	if err := c.confirm(r, rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource(r.Resource), name, err)
	}
	// It can gather anything, so it takes everything.
	if aggregates && c.confirm(r, everything) != nil {
		return apierrors.NewForbidden(rbacv1.Resource(r.Resource), name,
			errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Binding returns nil if the user may write a binding to the role, which is called name, and a 403 if not.
// If that depends on a role that is not there, it is a 404, about the resource that is written as in Kubernetes, or a
// 400 where no role can be.
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
	if err := c.confirm(r, rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource(r.Resource), name, err)
	}
	return nil
}

// master reports whether a user may do everything whatever the roles say.
func master(who user.Info) bool { return slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) }

func (c *Checker) allowed(ctx context.Context, r Request, verb, resource, name string) bool {
	d, _ := c.Authorizer.Authorize(ctx, r.User, &request.Info{
		IsResource: true, Verb: verb, Group: rbacv1.GroupName, Version: "*", Resource: resource,
		Namespace: r.Namespace, Name: name,
	})
	return d.Allowed()
}

// request makes the Request of a call.
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

// read makes Go values of an object and the one before it, which may be nil.
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

// collectable reports whether an update changes nothing but what the garbage collector changes to let the object go.
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
