package rbac

import (
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

var _ authz.Viewer = (*Evaluator)(nil)

// moment is a policy with a link to its successor. A moment stays in memory as long as an earlier one is in use.
type moment struct {
	*policy
	revision int64 // first revision at which it applies
	next     atomic.Pointer[moment]
	ended    chan struct{} // closed when next is set

	// subjects lists the subjects with possibly changed grants since the previous moment, if all is false.
	subjects []subjectKey
	all      bool
}

// moments holds the latest policies. One goroutine adds, any may read.
type moments struct {
	first, last atomic.Pointer[moment]
	length      int

	// since returns the revision from which on all changes are known. If it is nil, that is the first moment's.
	since func() int64
}

// subjectsKept is the maximum number of subjects in a moment; with more, all is set.
const subjectsKept = 64

// momentsKept is the number of policies kept for watches that resume. They share nearly all of their memory.
const momentsKept = 128

func (m *moments) add(one *moment) {
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
func (e *Evaluator) Visible(who user.Info, what *request.Info) request.Visibility {
	return &visibility{moment: e.moments.last.Load(), known: &e.moments, who: who, what: what}
}

// visibility is the part of a resource that a user may see at one moment.
type visibility struct {
	*moment
	// bound is a later moment, nil for none: objects must be visible then, too.
	bound *moment
	known *moments
	who   user.Info
	what  *request.Info
}

// IncludesAll implements request.Visibility.
func (v *visibility) IncludesAll(namespace string) bool { return v.Includes(namespace, "") }

// Includes implements request.Visibility.
func (v *visibility) Includes(namespace, name string) bool {
	one := *v.what
	one.Namespace, one.Name = namespace, name
	return v.allows(&one)
}

// Allows implements request.Visibility.
func (v *visibility) Allows(verb, subresource string) bool {
	one := *v.what
	one.Verb, one.Subresource = verb, subresource
	return v.allows(&one)
}

func (v *visibility) allows(what *request.Info) bool {
	return v.policy.allows(v.who, what) && (v.bound == nil || v.bound.policy.allows(v.who, what))
}

func (p *policy) allows(who user.Info, what *request.Info) bool {
	q := question{policy: p, who: who, what: what}
	return q.allowed()
}

// At implements request.Visibility.
func (v *visibility) At(revision int64) (then, still request.Visibility) {
	at, last := v.known.first.Load(), v.known.last.Load()
	if at.revision > revision || v.known.since != nil && revision < v.known.since() {
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

func (v *visibility) as(at, bound *moment) *visibility {
	return &visibility{moment: at, bound: bound, known: v.known, who: v.who, what: v.what}
}

// movedBy reports whether a moment may show the user other objects than the moment before it.
func (v *visibility) movedBy(m *moment) bool {
	return m.all || slices.ContainsFunc(m.subjects, v.concerns)
}

// concerns reports whether a grant is for the user.
func (v *visibility) concerns(k subjectKey) bool {
	if k.group {
		return slices.Contains(v.who.GetGroups(), k.name)
	}
	return k.name == v.who.GetName()
}
