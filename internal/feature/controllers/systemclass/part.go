// Package systemclass creates the system's priority classes.
package systemclass

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the system's priority classes.
func Part() part.Part {
	return part.Part{Name: "priority classes", Start: func(ctx context.Context, h *part.Host) error {
		ctx, cancel := h.Starting(ctx)
		defer cancel()
		return makeClasses(ctx, h.Verbs)
	}}
}
