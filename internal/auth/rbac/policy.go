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

// policy holds all roles and bindings at one revision. It is immutable.
type policy struct {
	roles    trie[id, *role]
	bindings trie[id, *binding]
	grants   trie[subjectKey, *grants]
	seed     maphash.Seed
}

// id identifies a role or a binding; the namespace is "" for cluster-wide ones.
type id struct{ namespace, name string }

type role struct{ rules []rbacv1.PolicyRule }

// binding grants a role to subjects.
type binding struct {
	id
	ref      rbacv1.RoleRef
	roleID   id
	roleHash uint64
	subjects []subject // subjects that can match a user
}

// subject is one subject of a binding. A service account is the user with its name.
type subject struct {
	namespace string // of a service account; defaults to the binding's
	name      string
	kind      string
	reason    atomic.Pointer[string] // made when it first allows a request
}

// subjectKey is the subject and the scope of a grant. namespace is "" for the whole cluster.
type subjectKey struct {
	namespace string
	name      string // of the user or group
	group     bool
}

// grants holds the bindings for one subjectKey, ordered by name.
type grants struct {
	batch uint64
	list  []*binding
}

// key returns the subject as a user or group; b is its binding.
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

// hash functions: each string is hashed once, and combinations are mixed.

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

// edit is the next policy under construction. Readers see it only when it is complete.
type edit struct {
	policy
	batch uint64

	subjects []subjectKey // subjects with changed grants
	changed  bool         // whether roles have changed
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
	if found { // a binding with a repeated subject
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
