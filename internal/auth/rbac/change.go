package rbac

import (
	"encoding/json"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Change is one write to a role or a binding.
type Change struct {
	// Binding is true for a binding, false for a role.
	Binding bool
	// Namespace is "" for cluster roles and their bindings.
	Namespace, Name string
	Deleted         bool
	// Revision is the revision of the write, from which on it applies.
	Revision int64
	// Rules are a role's rules. They are read only from here on.
	Rules []rbacv1.PolicyRule
	// RoleRef and Subjects are a binding's.
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// Apply applies changes to later decisions, atomically. Only one goroutine calls it.
func (e *Evaluator) Apply(changes ...Change) {
	e.batch++
	next := &edit{policy: *e.now(), batch: e.batch}
	var revision int64
	for i := range changes {
		c := &changes[i]
		revision = max(revision, c.Revision)
		at := id{c.Namespace, c.Name}
		switch {
		case !c.Binding && c.Deleted:
			next.putRole(at, nil)
		case !c.Binding:
			next.putRole(at, &role{c.Rules})
		case c.Deleted:
			next.putBinding(at, nil)
		default:
			next.putBinding(at, next.compile(c))
		}
	}
	e.history.add(&policyVersion{policy: &next.policy, revision: revision, subjects: next.subjects, all: next.changed})
}

// compile compiles a binding. Subjects that cannot match any user are left out.
func (p *policy) compile(c *Change) *binding {
	b := &binding{id: id{c.Namespace, c.Name}, ref: c.RoleRef, roleID: id{name: c.RoleRef.Name}}
	if c.RoleRef.Kind != clusterRole {
		b.roleID.namespace = c.Namespace
	}
	b.roleHash = p.hashID(b.roleID)
	usable := 0
	for _, s := range c.Subjects {
		if matchable(s, c.Namespace) {
			usable++
		}
	}
	b.subjects = make([]subject, 0, usable)
	for _, s := range c.Subjects {
		if !matchable(s, c.Namespace) {
			continue
		}
		b.subjects = b.subjects[:len(b.subjects)+1]
		to := &b.subjects[len(b.subjects)-1]
		to.kind, to.name = s.Kind, s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			if to.namespace = s.Namespace; to.namespace == "" {
				to.namespace = c.Namespace
			}
		}
	}
	return b
}

// matchable reports whether a subject can match a user: a service account needs a namespace.
func matchable(s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
		return true
	case rbacv1.ServiceAccountKind:
		return s.Namespace != "" || namespace != ""
	}
	return false
}

const clusterRole = "ClusterRole"

// The collections of the view that hold roles and bindings.
const (
	RolesPrefix               = "roles"
	RoleBindingsPrefix        = "rolebindings"
	ClusterRolesPrefix        = "clusterroles"
	ClusterRoleBindingsPrefix = "clusterrolebindings"
)

// Follow makes the evaluator apply changes before the view shows their revision. Call it before the view loads.
func (e *Evaluator) Follow(view *watchcache.View) {
	e.history.since = view.Start
	view.Subscribe(func(events []*watchcache.Event) {
		var changes []Change
		for _, ev := range events {
			switch ev.Collection.Prefix() {
			case RolesPrefix, ClusterRolesPrefix:
				changes = append(changes, e.decode(ev, false))
			case RoleBindingsPrefix, ClusterRoleBindingsPrefix:
				changes = append(changes, e.decode(ev, true))
			}
		}
		if len(changes) > 0 && view.Revision() == 0 { // Load: there are no watches yet
			e.Apply(changes...)
			return
		}
		for len(changes) > 0 { // each revision has its policy: the one before a write decides about the write
			n := 1
			for n < len(changes) && changes[n].Revision == changes[0].Revision {
				n++
			}
			e.Apply(changes[:n]...)
			changes = changes[n:]
		}
	})
}

// decode decodes the parts of an object needed for decisions. An unreadable object grants nothing.
func (e *Evaluator) decode(ev *watchcache.Event, isBinding bool) Change {
	c := Change{
		Binding: isBinding, Namespace: ev.Entry.Namespace, Name: ev.Entry.Name, Deleted: ev.Type == watchcache.Deleted,
		Revision: ev.Revision,
	}
	if c.Deleted {
		return c
	}
	var content struct {
		Rules    []rbacv1.PolicyRule `json:"rules"`
		RoleRef  rbacv1.RoleRef      `json:"roleRef"`
		Subjects []rbacv1.Subject    `json:"subjects"`
	}
	if err := json.Unmarshal(ev.Entry.JSON(), &content); err != nil {
		e.log.Error("a stored role or binding cannot be read and grants nothing", "collection", ev.Collection.Prefix(),
			"namespace", c.Namespace, "name", c.Name, "error", err)
		c.Deleted = true
		return c
	}
	if isBinding {
		c.RoleRef, c.Subjects = content.RoleRef, content.Subjects
		c.RoleRef.APIGroup, c.RoleRef.Kind = one(c.RoleRef.APIGroup), one(c.RoleRef.Kind)
		for i := range c.Subjects {
			c.Subjects[i].Kind = one(c.Subjects[i].Kind)
		}
		return c
	}
	c.Rules = content.Rules
	for i := range c.Rules {
		r := &c.Rules[i]
		for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.NonResourceURLs} {
			for j := range list {
				list[j] = one(list[j])
			}
		}
	}
	return c
}

// one returns the shared copy of a string in roles and bindings.
func one(word string) string { return unique.Make(word).Value() }
