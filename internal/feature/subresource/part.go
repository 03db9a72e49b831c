package subresource

import "github.com/bowsprit/bowsprit/internal/part"

// Part brings what subresources of pods do.
func Part() part.Part {
	return part.Part{Name: "subresources of pods", Handlers: func(*part.Host) part.Handlers {
		return part.Handlers{Actions: Actions()}
	}}
}
