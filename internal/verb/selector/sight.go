package selector

import (
	"cmp"
	"slices"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Sight is what of a collection the caller may see. It remembers the answer about a namespace, because entries come in
// the order of their namespaces. It belongs to one goroutine; nil is all.
type Sight struct {
	request.Visibility
	namespace  string
	asked, all bool // about namespace
}

// NewSight returns what v shows, nil for nil.
func NewSight(v request.Visibility) *Sight {
	if v == nil {
		return nil
	}
	return &Sight{Visibility: v}
}

// Since returns the sight at a revision, and the part of it that is left today: the same if nothing has changed. Both
// are nil if the grants of the revision are no longer known.
func (s *Sight) Since(revision int64) (then, still *Sight) {
	was, is := s.At(revision)
	if then = NewSight(was); was == is {
		return then, then
	}
	return then, NewSight(is)
}

// Includes reports whether the caller may see an entry.
func (s *Sight) Includes(e *watchcache.Entry) bool {
	if s == nil {
		return true
	}
	if !s.asked || s.namespace != e.Namespace {
		s.asked, s.namespace, s.all = true, e.Namespace, s.IncludesAll(e.Namespace)
	}
	return s.all || s.Visibility.Includes(e.Namespace, e.Name)
}

// Turn returns the entries of a snapshot that leave the sight and those that come into it when to takes its place. The
// latter are in the order of their revisions. The selectors must still be asked about them.
func (sel *Selector) Turn(s *watchcache.Snapshot, to *Sight) (left, came []*watchcache.Entry) {
	s.Scan(sel.of.Namespace, "", func(e *watchcache.Entry) bool {
		before, now := sel.Sight.Includes(e), to.Includes(e)
		switch {
		case before == now || !sel.MayMatch(e):
		case before:
			left = append(left, e)
		default:
			came = append(came, e)
		}
		return true
	})
	slices.SortFunc(came, func(a, b *watchcache.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return left, came
}
