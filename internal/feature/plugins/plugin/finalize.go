package plugin

import (
	"context"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Finalize adds a finalizer to objects that lack it, so that they stay while they are in use. Package protection
// (feature/controllers) removes the finalizer.
func Finalize(name string) Step {
	return func(_ context.Context, a *admit.Attributes) error {
		if list, _ := catalog.At(a.Object, "metadata")["finalizers"].([]any); !slices.Contains(list, any(name)) {
			a.Edit("metadata")["finalizers"] = append(slices.Clip(list), name)
		}
		return nil
	}
}
