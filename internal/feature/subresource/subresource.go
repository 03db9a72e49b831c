// Package subresource implements subresources of pods with an object of another kind: eviction and binding.
//
// Package verb knows these subresources only by their names in the catalog, and calls the functions in this package's
// table. Package kubelet implements the subresources that connect a client to a node.
package subresource

import "github.com/bowsprit/bowsprit/internal/verb"

// Actions returns the functions for a POST to a subresource, for verb.Config.
func Actions() map[string]verb.Action {
	return map[string]verb.Action{
		"pods/eviction": evictionAction(),
		"pods/binding":  bindingAction(),
		"bindings":      bindingAction(),
	}
}
