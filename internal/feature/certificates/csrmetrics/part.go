package csrmetrics

import (
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part adds the metrics of issued certificates.
func Part() part.Part {
	return part.Part{Name: "certificate metrics", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Updated: map[string]func(old, now object.Object){
			"certificatesigningrequests.certificates.k8s.io/status": New(h.Metrics).Updated,
		}}
	}}
}
