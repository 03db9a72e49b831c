// Package rbac authorizes requests by roles and bindings.
//
// It is one of the authorizers of package authz. An Evaluator follows the view: each change of a Role, RoleBinding,
// ClusterRole or ClusterRoleBinding becomes the next policy, an immutable index of bindings by subject and namespace,
// before the view shows its revision. So after a caller has waited for the revision of a write, the write applies to
// its requests, and each decision uses the roles and bindings of one revision. A decision takes no lock and, except
// when a binding allows a request for the first time, no memory; its cost depends on the user's bindings, not on the
// total number.
//
// Rules and texts come from Kubernetes' authorizer; test/oracle-builtins compares both. All methods
// are safe for concurrent use except Apply, which only the view's goroutine calls.
package rbac

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Evaluator authorizes requests by roles and bindings.
type Evaluator struct {
	history policyHistory
	log     *slog.Logger

	batch uint64 // Apply only
}

var _ authz.Mode = (*Evaluator)(nil)

// New returns an evaluator without roles.
func New(log *slog.Logger) *Evaluator {
	e := &Evaluator{log: log}
	e.history.add(&policyVersion{policy: &policy{seed: maphash.MakeSeed()}})
	return e
}

// Authorize implements authz.Authorizer. It allows a request or has no opinion; the reason then lists the user's
// bindings with nonexistent roles.
func (e *Evaluator) Authorize(_ context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	q := query{policy: e.now(), user: u, info: info}
	if q.allowed() {
		return authz.Decision{Verdict: authz.Allow, Reason: q.reason()}, nil
	}
	return authz.Decision{Reason: q.complaint()}, nil
}

// query is one decision in progress.
type query struct {
	*policy
	user user.Info
	info *request.Info

	by      *binding   // the binding that allows it
	missing []*binding // the user's bindings with missing roles
}

// now returns the policy in force.
func (e *Evaluator) now() *policy { return e.history.last.Load().policy }

// allowed evaluates the cluster-wide bindings, then the bindings of the request's namespace.
func (q *query) allowed() bool {
	return q.allowedIn("") || q.info.Namespace != "" && q.allowedIn(q.info.Namespace)
}

// allowedIn evaluates the bindings of one namespace, or the cluster-wide ones.
func (q *query) allowedIn(namespace string) bool {
	at := q.hash(namespace)
	name := q.user.GetName()
	if g, ok := q.grants.get(mix(at, q.hash(name)), subjectKey{namespace, name, false}); ok && q.allowedBy(g) {
		return true
	}
	for _, group := range q.user.GetGroups() {
		g, ok := q.grants.get(mix(at, q.hash(group))^groupSalt, subjectKey{namespace, group, true})
		if ok && q.allowedBy(g) {
			return true
		}
	}
	return false
}

func (q *query) allowedBy(g *grants) bool {
	for _, b := range g.list {
		r := q.roleOf(b)
		if r == nil {
			q.missing = append(q.missing, b)
			continue
		}
		for i := range r.rules {
			if Allows(&r.rules[i], q.info) {
				q.by = b
				return true
			}
		}
	}
	return false
}

// roleOf returns the role of a binding; nil if it does not exist.
func (p *policy) roleOf(b *binding) *role {
	if b.ref.Kind != clusterRole && (b.ref.Kind != "Role" || b.namespace == "") {
		return nil
	}
	r, _ := p.roles.get(b.roleHash, b.roleID)
	return r
}

// reason returns the reason for allowing. If a binding names the user in several ways, the first counts.
func (q *query) reason() string {
	for i := range q.by.subjects {
		s := &q.by.subjects[i]
		if s.kind == rbacv1.GroupKind && slices.Contains(q.user.GetGroups(), s.name) || s.isUser(q.user.GetName()) {
			return s.describe(q.by)
		}
	}
	return ""
}

func (s *subject) describe(b *binding) string {
	if text := s.reason.Load(); text != nil {
		return *text
	}
	kind, name, to := "ClusterRoleBinding", b.name, s.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	if s.kind == rbacv1.ServiceAccountKind {
		to += "/" + s.namespace
	}
	text := fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, b.ref.Kind, b.ref.Name, s.kind, to)
	s.reason.Store(&text)
	return text
}

// complaint lists the missing roles, "" if there are none.
func (q *query) complaint() string {
	if len(q.missing) == 0 {
		return ""
	}
	refs := references(ordered(q.missing))
	return fmt.Sprintf("RBAC: %v", missingRoles(refs))
}

// ordered sorts bindings, cluster-wide ones first, and removes duplicates.
func ordered(list []*binding) []*binding {
	slices.SortFunc(list, func(a, b *binding) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return slices.Compact(list)
}

func references(list []*binding) []rbacv1.RoleRef {
	var refs []rbacv1.RoleRef
	for _, b := range list {
		refs = append(refs, b.ref)
	}
	return refs
}

// missingRoles returns the error about nonexistent roles in bindings, nil if refs is empty.
func missingRoles(refs []rbacv1.RoleRef) error {
	var errs []error
	for _, ref := range refs {
		errs = append(errs, NotFound(ref, strings.ToLower(ref.Kind)))
	}
	return utilerrors.NewAggregate(errs)
}

// NotFound returns the error about a nonexistent role in a binding; resource is the caller's name of the resource.
func NotFound(ref rbacv1.RoleRef, resource string) error {
	if ref.Kind != clusterRole && ref.Kind != "Role" {
		return fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	return apierrors.NewNotFound(rbacv1.Resource(resource), ref.Name)
}
