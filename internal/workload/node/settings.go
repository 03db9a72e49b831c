package node

import "k8s.io/apimachinery/pkg/api/resource"

// Settings configure the nodes that the server creates.
type Settings struct {
	// Nodes is the number of nodes, and Zones the number of zones among which they are distributed; 0 means none.
	Nodes, Zones int
	// Name is the name of a node, with %d for its number from 0.
	Name string
	// CPU, Memory and Pods are the resources of each node.
	CPU, Memory resource.Quantity
	Pods        int // see CPU
}

// clientMade returns the resources of a node that a client made without any.
func clientMade() Settings {
	return Settings{CPU: resource.MustParse("8"), Memory: resource.MustParse("32Gi"), Pods: 110}
}
