// Package authz compares internal/authn and internal/authz with the impersonation filter of k8s.io/apiserver. It has tests
// only.
package authz
