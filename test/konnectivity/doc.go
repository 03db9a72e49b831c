// Package konnectivity runs Konnectivity's halves in every combination: upstream's proxy-server and proxy-agent
// (sigs.k8s.io/apiserver-network-proxy v0.34.0) and ours, behind a server that reaches webhooks and aggregated APIs
// through them. It is a module of its own, because upstream's has some 700 dependencies.
package konnectivity
