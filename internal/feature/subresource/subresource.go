// Package subresource has what subresources of pods do that take no object of the kind they stand below: a pod is
// evicted or bound to a node.
//
// It stands beside package verb, which knows these subresources by the name in the catalog and nothing else, and asks
// the table that this package returns. What connects a client with a node is in package kubelet.
package subresource

import "github.com/bowsprit/bowsprit/internal/verb"

// Actions returns what a POST to a subresource does, for verb.Config.
func Actions() map[string]verb.Action {
	return map[string]verb.Action{
		"pods/eviction": evictionAction(),
		"pods/binding":  bindingAction(),
		"bindings":      bindingAction(),
	}
}
