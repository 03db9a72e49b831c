// Package subresource has what subresources of pods, services and nodes do that take no object of the kind they stand
// below: a pod is evicted or bound to a node, and a client wants to be connected to what only a kubelet can reach.
//
// It stands beside packages verb and rest, which know these subresources by the name in the catalog and nothing else,
// and ask the tables that this package returns.
package subresource

import (
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Actions returns what a POST to a subresource does, for verb.Config.
func Actions() map[string]verb.Action {
	return map[string]verb.Action{
		"pods/eviction": evictionAction(),
		"pods/binding":  bindingAction(),
		"bindings":      bindingAction(),
	}
}

// Connections returns who answers a request to be connected, for rest.Config. There is no way to a kubelet: what can
// be said without one is said.
func Connections() map[string]rest.Connection {
	return map[string]rest.Connection{
		"pods/log":         {Serve: servePod},
		"pods/exec":        {Serve: servePod, Options: execOptions},
		"pods/attach":      {Serve: servePod, Options: attachOptions},
		"pods/portforward": {Serve: servePod, Options: portForwardOptions},
		"pods/proxy":       {Serve: servePod, Options: podProxyOptions, Proxy: true},
		"services/proxy":   {Serve: serveService, Options: serviceProxyOptions, Proxy: true},
		"nodes/proxy":      {Serve: serveNode, Options: nodeProxyOptions, Proxy: true},
	}
}
