// Package workloads has only tests: they compare simulated workloads, on a server as a client sees it, with the
// unmodified scheduler and controllers of k8s.io/kubernetes.
package workloads
