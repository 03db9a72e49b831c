// Package authz compares internal/auth/authn and internal/auth/authz with the impersonation filter of
// k8s.io/apiserver. It has tests only.
package authz
