// Package clientgo is a program of another module that imports testserver and uses it with client-go. It is built
// twice: go.mod has the Kubernetes libraries of bowsprit's own go.mod, k8s-0.37.mod the libraries of the next minor
// version.
package clientgo
