package rbac

import (
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

var _ authz.Viewer = (*Evaluator)(nil)

// moment is a policy, and where the one after it is found. Moments are kept by those who hold one before them.
type moment struct {
	*policy
	revision int64 // from which on it holds
	next     atomic.Pointer[moment]
	ended    chan struct{} // closed when next is set

	// subjects are those whose grants may be other than a moment before, if all is false.
	subjects []subjectKey
	all      bool
}

// moments are the last policies, the latest included. One goroutine adds, any may read.
type moments struct {
	first, last atomic.Pointer[moment]
	length      int
}

// subjectsKept is how many subjects a moment names before it is about all.
const subjectsKept = 64

// momentsKept is how many policies are known for watches that resume. They share nearly all of their memory.
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

// visibility is what a user may see of a resource at one moment.
type visibility struct {
	*moment
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
	q := question{policy: v.policy, who: v.who, what: &one}
	return q.allowed()
}

// At implements request.Visibility.
func (v *visibility) At(revision int64) request.Visibility {
	at := v.known.first.Load()
	if at.revision > revision {
		return nil
	}
	for next := at.next.Load(); next != nil && next.revision <= revision; next = at.next.Load() {
		at = next
	}
	return v.as(at)
}

// Next implements request.Visibility.
func (v *visibility) Next() (next request.Visibility, revision int64, moved bool) {
	at := v.next.Load()
	if at == nil {
		return nil, 0, false
	}
	return v.as(at), at.revision, at.all || slices.ContainsFunc(at.subjects, v.concerns)
}

// Changed implements request.Visibility.
func (v *visibility) Changed() <-chan struct{} { return v.ended }

func (v *visibility) as(at *moment) *visibility {
	return &visibility{moment: at, known: v.known, who: v.who, what: v.what}
}

// concerns reports whether a grant is for the user.
func (v *visibility) concerns(k subjectKey) bool {
	if k.group {
		return slices.Contains(v.who.GetGroups(), k.name)
	}
	return k.name == v.who.GetName()
}
