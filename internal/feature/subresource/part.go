package subresource

import "github.com/bowsprit/bowsprit/internal/part"

// Part adds the subresources of pods.
func Part() part.Part {
	return part.Part{Name: "subresources of pods", Handlers: func(*part.Host) part.Handlers {
		return part.Handlers{Actions: Actions()}
	}}
}
