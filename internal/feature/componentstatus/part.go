package componentstatus

import (
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part brings the objects of kind ComponentStatus.
func Part() part.Part {
	return part.Part{Name: "component statuses", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Finders: map[string]verb.Finder{"componentstatuses": Find(Config{Store: h.Store.Check})}}
	}}
}
