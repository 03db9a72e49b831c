package kinds

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// prepareDriverCreate drops what Kubernetes has behind a feature gate.
func prepareDriverCreate(obj catalog.Object, _ catalog.Env) {
	delete(child(obj, "spec"), "preventPodSchedulingIfMissing")
}

// prepareDriverUpdate counts changes of spec; a new driver has no generation.
func prepareDriverUpdate(obj, old catalog.Object, _ string, _ catalog.Env) {
	if catalog.At(old, "spec")["preventPodSchedulingIfMissing"] == nil {
		delete(child(obj, "spec"), "preventPodSchedulingIfMissing")
	}
	countChange(obj, old)
}

// keepGeneration is the PrepareUpdate rule of a kind whose objects have a generation that does not rise.
func keepGeneration(catalog.Object, catalog.Object, string, catalog.Env) {}
