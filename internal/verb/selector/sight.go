package selector

import (
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
