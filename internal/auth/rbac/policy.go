package rbac

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
)

// policy is all roles and bindings at one revision. It is immutable.
type policy struct {
	roles    trie[id, *role]
	bindings trie[id, *binding]
	grants   trie[subjectKey, *grants]
	seed     maphash.Seed
}

// id names a role or a binding; the namespace is "" of those for the whole cluster.
type id struct{ namespace, name string }

type role struct{ rules []rbacv1.PolicyRule }

// binding grants a role to subjects.
type binding struct {
	id
	ref      rbacv1.RoleRef
	roleID   id
	roleHash uint64
	subjects []subject // those that can be someone
}

// subject is one to whom a binding grants. A service account is the user of its name.
type subject struct {
	namespace string // of a service account, where the binding says none: the binding's
	name      string
	kind      string
	reason    atomic.Pointer[string] // made when it first allows something
}

// subjectKey is whom a grant is for and where it holds. namespace is "" for the whole cluster.
type subjectKey struct {
	namespace string
	name      string // of the user or the group
	group     bool
}

// grants are the bindings for one subjectKey, in the order of their names.
type grants struct {
	batch uint64
	list  []*binding
}

// key returns whom the subject is as users and groups go; b is the binding that names it.
func (s *subject) key(b *binding) subjectKey {
	switch s.kind {
	case rbacv1.GroupKind:
		return subjectKey{b.namespace, s.name, true}
	case rbacv1.ServiceAccountKind:
		return subjectKey{b.namespace, accountPrefix + s.namespace + ":" + s.name, false}
	}
	return subjectKey{b.namespace, s.name, false}
}

const accountPrefix = "system:serviceaccount:"

// isUser reports whether the subject is the user of a name.
func (s *subject) isUser(name string) bool {
	if s.kind == rbacv1.UserKind {
		return s.name == name
	}
	if s.kind != rbacv1.ServiceAccountKind {
		return false
	}
	rest, ok := strings.CutPrefix(name, accountPrefix)
	return ok && len(rest) == len(s.namespace)+1+len(s.name) && rest[len(s.namespace)] == ':' &&
		strings.HasPrefix(rest, s.namespace) && strings.HasSuffix(rest, s.name)
}

// hash functions: each string is hashed once, and what belongs together is mixed.

func (p *policy) hash(s string) uint64 { return maphash.String(p.seed, s) }

func mix(namespace, name uint64) uint64 {
	return name ^ bits.RotateLeft64(namespace, 27)*0x9e3779b97f4a7c15
}

func (p *policy) hashID(i id) uint64 { return mix(p.hash(i.namespace), p.hash(i.name)) }

// groupSalt keeps a group from having the hash of the user of the same name.
const groupSalt = 0x517cc1b727220a95

func (p *policy) hashKey(k subjectKey) uint64 {
	h := mix(p.hash(k.namespace), p.hash(k.name))
	if k.group {
		h ^= groupSalt
	}
	return h
}

// edit makes the next policy. Nothing of it is seen by readers before all of it is made.
type edit struct {
	policy
	batch uint64

	subjects []subjectKey // whose grants are other than before
	changed  bool         // whether roles are
}

func (e *edit) putRole(at id, r *role) {
	e.changed = true
	if r == nil {
		e.roles = e.roles.remove(e.batch, e.hashID(at), at)
		return
	}
	e.roles = e.roles.put(e.batch, e.hashID(at), at, r)
}

// putBinding sets the binding at its id, or removes it if b is nil.
func (e *edit) putBinding(at id, b *binding) {
	hash := e.hashID(at)
	if old, ok := e.bindings.get(hash, at); ok {
		for i := range old.subjects {
			e.revoke(old.subjects[i].key(old), old)
		}
	}
	if b == nil {
		e.bindings = e.bindings.remove(e.batch, hash, at)
		return
	}
	e.bindings = e.bindings.put(e.batch, hash, at, b)
	for i := range b.subjects {
		e.grant(b.subjects[i].key(b), b)
	}
}

func byName(b *binding, name string) int { return cmp.Compare(b.name, name) }

func (e *edit) grant(k subjectKey, b *binding) {
	e.subjects = append(e.subjects, k)
	hash := e.hashKey(k)
	g, _ := e.grants.get(hash, k)
	own := e.own(g)
	i, found := slices.BinarySearchFunc(own.list, b.name, byName)
	if found { // a binding that names a subject twice
		return
	}
	own.list = slices.Insert(own.list, i, b)
	e.grants = e.grants.put(e.batch, hash, k, own)
}

func (e *edit) revoke(k subjectKey, b *binding) {
	e.subjects = append(e.subjects, k)
	hash := e.hashKey(k)
	g, ok := e.grants.get(hash, k)
	if !ok {
		return
	}
	i, found := slices.BinarySearchFunc(g.list, b.name, byName)
	if !found {
		return
	}
	if len(g.list) == 1 {
		e.grants = e.grants.remove(e.batch, hash, k)
		return
	}
	own := e.own(g)
	own.list = slices.Delete(own.list, i, i+1)
	e.grants = e.grants.put(e.batch, hash, k, own)
}

// own returns grants that this edit may change.
func (e *edit) own(g *grants) *grants {
	switch {
	case g == nil:
		return &grants{batch: e.batch}
	case g.batch == e.batch:
		return g
	}
	return &grants{batch: e.batch, list: slices.Clone(g.list)}
}
