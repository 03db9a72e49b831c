// Package discovery compares the responses of internal/api/discovery with the responses of a running
// k8s.io/apiextensions-apiserver.
package discovery
