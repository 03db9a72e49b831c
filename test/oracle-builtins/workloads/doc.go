// Package workloads has no code of its own: its tests hold simulated workloads, on a server as a client sees it, to the
// scheduler and the controllers of k8s.io/kubernetes, which they run as they are.
package workloads
