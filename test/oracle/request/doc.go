// Package request compares internal/request with the resolver of k8s.io/apiserver. It has tests only.
package request
