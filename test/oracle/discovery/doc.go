// Package discovery compares the answers of internal/api/discovery with those of a running
// k8s.io/apiextensions-apiserver.
package discovery
