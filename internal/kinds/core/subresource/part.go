package subresource

import "github.com/bowsprit/bowsprit/internal/part"

// Part brings what subresources of pods, services and nodes do.
func Part() part.Part {
	return part.Part{Name: "subresources of pods", Handlers: func(*part.Host) part.Handlers {
		return part.Handlers{Actions: Actions(), Connections: Connections()}
	}}
}
