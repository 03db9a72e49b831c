package rbac

import (
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

var _ authz.Viewer = (*Evaluator)(nil)

// policyVersion is a policy with a link to its successor. A version stays in memory as long as an earlier one is in
// use.
type policyVersion struct {
	*policy
	revision int64 // first revision at which it applies
	next     atomic.Pointer[policyVersion]
	ended    chan struct{} // closed when next is set

	// subjects lists the subjects with possibly changed grants since the previous version, if all is false.
	subjects []subjectKey
	all      bool
}

// policyHistory holds the latest policies. One goroutine adds, any may read.
type policyHistory struct {
	first, last atomic.Pointer[policyVersion]
	length      int

	// since returns the revision from which on all changes are known. If it is nil, that is the first version's.
	since func() int64
}

// subjectsKept is the maximum number of subjects in a version; with more, all is set.
const subjectsKept = 64

// momentsKept is the number of policies kept for watches that resume. They share nearly all of their memory.
const momentsKept = 128

func (m *policyHistory) add(one *policyVersion) {
	one.ended = make(chan struct{})
	if one.all = one.all || len(one.subjects) > subjectsKept; one.all {
		one.subjects = nil
	}
	last := m.last.Swap(one)
	if last == nil {
		m.first.Store(one)
		return
	}
	last.next.Store(one)
	close(last.ended)
	if m.length++; m.length == momentsKept {
		m.length--
		m.first.Store(m.first.Load().next.Load())
	}
}

// Visible implements authz.Viewer.
func (e *Evaluator) Visible(u user.Info, info *request.Info) request.Visibility {
	return &visibility{policyVersion: e.history.last.Load(), history: &e.history, user: u, info: info}
}

// visibility is the part of a resource that a user may see under one version of the policy.
type visibility struct {
	*policyVersion
	// bound is a later version, nil for none: objects must be visible then, too.
	bound   *policyVersion
	history *policyHistory
	user    user.Info
	info    *request.Info
}

// IncludesAll implements request.Visibility.
func (v *visibility) IncludesAll(namespace string) bool { return v.Includes(namespace, "") }

// Includes implements request.Visibility.
func (v *visibility) Includes(namespace, name string) bool {
	one := *v.info
	one.Namespace, one.Name = namespace, name
	return v.allows(&one)
}

// Allows implements request.Visibility.
func (v *visibility) Allows(verb, subresource string) bool {
	one := *v.info
	one.Verb, one.Subresource = verb, subresource
	return v.allows(&one)
}

func (v *visibility) allows(info *request.Info) bool {
	return v.policy.allows(v.user, info) && (v.bound == nil || v.bound.policy.allows(v.user, info))
}

func (p *policy) allows(u user.Info, info *request.Info) bool {
	q := query{policy: p, user: u, info: info}
	return q.allowed()
}

// At implements request.Visibility.
func (v *visibility) At(revision int64) (then, still request.Visibility) {
	at, last := v.history.first.Load(), v.history.last.Load()
	if at.revision > revision || v.history.since != nil && revision < v.history.since() {
		return nil, nil
	}
	for next := at.next.Load(); next != nil && next.revision <= revision; next = at.next.Load() {
		at = next
	}
	was := v.as(at, nil)
	for next := at; next != last; {
		if next = next.next.Load(); next == nil || v.movedBy(next) { // nil: last is being added
			return was, v.as(at, last)
		}
	}
	return was, was
}

// Next implements request.Visibility.
func (v *visibility) Next() (next request.Visibility, revision int64, moved bool) {
	at := v.next.Load()
	if at == nil {
		return nil, 0, false
	}
	bound := v.bound
	if at == bound {
		bound = nil
	}
	return v.as(at, bound), at.revision, v.movedBy(at)
}

// Changed implements request.Visibility.
func (v *visibility) Changed() <-chan struct{} { return v.ended }

func (v *visibility) as(at, bound *policyVersion) *visibility {
	return &visibility{policyVersion: at, bound: bound, history: v.history, user: v.user, info: v.info}
}

// movedBy reports whether a version may show the user other objects than its predecessor.
func (v *visibility) movedBy(m *policyVersion) bool {
	return m.all || slices.ContainsFunc(m.subjects, v.concerns)
}

// concerns reports whether a grant is for the user.
func (v *visibility) concerns(k subjectKey) bool {
	if k.group {
		return slices.Contains(v.user.GetGroups(), k.name)
	}
	return k.name == v.user.GetName()
}
