// Package systemclass makes the priority classes that every cluster has.
package systemclass

import (
	"context"
	"time"

	"github.com/bowsprit/bowsprit/internal/part"
)

// startTimeout bounds the making of priority classes. A webhook that does not answer must not keep the server from
// starting.
const startTimeout = 5 * time.Second

// Part brings the system's priority classes.
func Part() part.Part {
	return part.Part{Name: "priority classes", Start: func(ctx context.Context, h *part.Host) error {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		return makeClasses(ctx, h.Verbs)
	}}
}
