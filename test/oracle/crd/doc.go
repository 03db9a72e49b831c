// Package crd holds package internal/api/crd to the validation and the controllers of k8s.io/apiextensions-apiserver:
// the same definitions, real ones and mutations of them, go to both, and errors, conditions and decoded values must be
// equal.
package crd
