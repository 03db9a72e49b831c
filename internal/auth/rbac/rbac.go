// Package rbac decides by roles and bindings whether a user may do what a request asks for.
//
// It stands beside authentication, as one authorizer of those that package authz asks. An Evaluator follows the view:
// each change of a Role, RoleBinding, ClusterRole or ClusterRoleBinding becomes the next policy, an immutable index of
// bindings by subject and namespace, before the view shows its revision. So a caller that has waited for the revision
// of a write is decided about under it, and a decision is made by roles and bindings of one revision. It takes no lock
// and, but for the first time that a binding allows something, no memory; what it costs depends on the bindings that
// concern the user, not on how many there are.
//
// The rules are those of Kubernetes' authorizer, whose texts are here too; test/oracle-builtins compares both.
// All methods are safe for concurrent use but Apply, which has one caller: the view's goroutine.
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

// Evaluator decides by the roles and bindings that it knows.
type Evaluator struct {
	moments moments
	log     *slog.Logger

	batch uint64 // Apply only
}

var _ authz.Mode = (*Evaluator)(nil)

// New returns an evaluator that knows no role yet.
func New(log *slog.Logger) *Evaluator {
	e := &Evaluator{log: log}
	e.moments.add(&moment{policy: &policy{seed: maphash.MakeSeed()}})
	return e
}

// Authorize implements authz.Authorizer. It allows or has no opinion; the reason of the latter says which bindings of
// the user name roles that do not exist.
func (e *Evaluator) Authorize(_ context.Context, who user.Info, what *request.Info) (authz.Decision, error) {
	q := question{policy: e.now(), who: who, what: what}
	if q.allowed() {
		return authz.Decision{Verdict: authz.Allow, Reason: q.reason()}, nil
	}
	return authz.Decision{Reason: q.complaint()}, nil
}

// question is one decision in the making.
type question struct {
	*policy
	who  user.Info
	what *request.Info

	by      *binding   // what allows it
	missing []*binding // those for the user whose role is not there
}

// now returns the policy in force.
func (e *Evaluator) now() *policy { return e.moments.last.Load().policy }

// allowed asks the bindings for the whole cluster, and those of the namespace that is asked about.
func (q *question) allowed() bool {
	return q.allowedIn("") || q.what.Namespace != "" && q.allowedIn(q.what.Namespace)
}

// allowedIn asks the bindings of one namespace, or those for the whole cluster.
func (q *question) allowedIn(namespace string) bool {
	at := q.hash(namespace)
	name := q.who.GetName()
	if g, ok := q.grants.get(mix(at, q.hash(name)), subjectKey{namespace, name, false}); ok && q.allowedBy(g) {
		return true
	}
	for _, group := range q.who.GetGroups() {
		g, ok := q.grants.get(mix(at, q.hash(group))^groupSalt, subjectKey{namespace, group, true})
		if ok && q.allowedBy(g) {
			return true
		}
	}
	return false
}

func (q *question) allowedBy(g *grants) bool {
	for _, b := range g.list {
		r := q.roleOf(b)
		if r == nil {
			q.missing = append(q.missing, b)
			continue
		}
		for i := range r.rules {
			if Allows(&r.rules[i], q.what) {
				q.by = b
				return true
			}
		}
	}
	return false
}

// roleOf returns the role that a binding grants; nil if it is not there.
func (p *policy) roleOf(b *binding) *role {
	if b.ref.Kind != clusterRole && (b.ref.Kind != "Role" || b.namespace == "") {
		return nil
	}
	r, _ := p.roles.get(b.roleHash, b.roleID)
	return r
}

// reason says what allows. A binding that names the user in several ways does so by the first.
func (q *question) reason() string {
	for i := range q.by.subjects {
		s := &q.by.subjects[i]
		if s.kind == rbacv1.GroupKind && slices.Contains(q.who.GetGroups(), s.name) || s.isUser(q.who.GetName()) {
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

// complaint says which roles are not there, "" if none.
func (q *question) complaint() string {
	if len(q.missing) == 0 {
		return ""
	}
	refs := references(ordered(q.missing))
	return fmt.Sprintf("RBAC: %v", missingRoles(refs))
}

// ordered sorts bindings, those for the whole cluster first, and keeps each once.
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

// missingRoles is the error about roles that bindings name and that are not there, nil if refs is empty.
func missingRoles(refs []rbacv1.RoleRef) error {
	var errs []error
	for _, ref := range refs {
		errs = append(errs, NotFound(ref, strings.ToLower(ref.Kind)))
	}
	return utilerrors.NewAggregate(errs)
}

// NotFound is the error about a role that a binding names and that is not there, of the resource as the caller calls
// it.
func NotFound(ref rbacv1.RoleRef, resource string) error {
	if ref.Kind != clusterRole && ref.Kind != "Role" {
		return fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	return apierrors.NewNotFound(rbacv1.Resource(resource), ref.Name)
}
