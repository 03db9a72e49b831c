package selector

import (
	"cmp"
	"slices"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Sight is the part of a collection that the caller may see. It caches the decision for the last namespace, because
// entries come ordered by namespace. It belongs to one goroutine; nil shows everything.
type Sight struct {
	request.Visibility
	namespace       string
	restricted, all bool // about namespace
}

// NewSight returns the Sight for v; nil for nil.
func NewSight(v request.Visibility) *Sight {
	if v == nil {
		return nil
	}
	return &Sight{Visibility: v}
}

// Since returns the sight at a revision, and the part of it that is still visible: the same value if nothing has
// changed. Both are nil if the grants at the revision have been dropped.
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
	if !s.restricted || s.namespace != e.Namespace {
		s.restricted, s.namespace, s.all = true, e.Namespace, s.IncludesAll(e.Namespace)
	}
	return s.all || s.Visibility.Includes(e.Namespace, e.Name)
}

// Turn returns the entries of a snapshot that leave or enter the sight when it is replaced by to. Entries that enter
// are in the order of their revisions. The caller must still match the entries.
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
