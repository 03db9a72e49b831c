package rbac

import (
	"fmt"
	"log/slog"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// TestVisibility follows one user's visible objects through changes of roles and bindings.
func TestVisibility(t *testing.T) {
	t.Parallel()
	e := New(slog.New(slog.DiscardHandler))
	rules := func(names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names,
		}}
	}
	grant := func(revision int64, namespace, role, to string) {
		e.Apply(Change{
			Binding: true, Namespace: namespace, Name: role, Revision: revision,
			RoleRef:  rbacv1.RoleRef{Kind: clusterRole, Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: to}},
		})
	}
	e.Apply(Change{Name: "all", Rules: rules(), Revision: 10}, Change{Name: "one", Rules: rules("a"), Revision: 11})
	info := &request.Info{IsResource: true, Verb: "list", Resource: "secrets"}
	mona := e.Visible(&user.DefaultInfo{Name: "mona", Groups: []string{"g"}}, info)
	if mona.IncludesAll("") || mona.Includes("x", "a") {
		t.Error("something is visible without a grant")
	}
	if next, _, _ := mona.Next(); next != nil {
		t.Error("there is a change without a write")
	}
	grant(20, "x", "one", "mona")
	<-mona.Changed()
	next, revision, moved := mona.Next()
	if revision != 20 || !moved || !next.Includes("x", "a") || next.Includes("x", "b") || next.IncludesAll("x") ||
		next.Includes("y", "a") {
		t.Errorf("a grant of one name: at %d, moved %v, %+v", revision, moved, next)
	}
	if mona.Includes("x", "a") {
		t.Error("what was visible has changed")
	}
	grant(30, "x", "all", "someone-else")
	if last, _, moved := next.Next(); moved || last.Includes("x", "b") {
		t.Error("another user's grant moves what mona may see")
	}
	e.Apply(Change{Name: "one", Rules: rules("b"), Revision: 40})
	now := e.Visible(&user.DefaultInfo{Name: "mona"}, info)
	for revision, want := range map[int64]string{11: "", 19: "", 20: "a", 39: "a", 40: "b", 99: "b"} {
		for _, name := range []string{"a", "b"} {
			then, still := now.At(revision)
			if got := then.Includes("x", name); got != (name == want) {
				t.Errorf("at %d %s is visible: %v", revision, name, got)
			}
			if got := still.Includes("x", name); got != (name == want && name == "b") {
				t.Errorf("of %d %s is visible still: %v", revision, name, got)
			}
		}
	}
	// A cluster-wide role, and one version too many.
	e.Apply(Change{
		Binding: true, Name: "all", Revision: 50, RoleRef: rbacv1.RoleRef{Kind: clusterRole, Name: "all"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "g"}},
	})
	then, _ := mona.At(40)
	if last, _, moved := then.Next(); !moved || !last.IncludesAll("") || !last.Includes("", "node") {
		t.Error("a role for the whole cluster does not show all")
	}
	for i := range int64(momentsKept) {
		grant(60+i, "x", fmt.Sprint("role-", i), "someone-else")
	}
	early, _ := mona.At(50)
	late, _ := mona.At(60 + momentsKept)
	if early != nil || late == nil {
		t.Error("what is known does not end where it should")
	}
}
