// Package crd compares package internal/api/crd with the validation and the controllers of
// k8s.io/apiextensions-apiserver: both get the same definitions, real ones and mutations of them, and errors,
// conditions and decoded values must be equal.
package crd
