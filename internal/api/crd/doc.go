// Package crd turns CustomResourceDefinitions into what the catalog serves.
//
// A definition reaches this package three times. When a client writes it, Normalize brings the decoded body into the
// form of the Go type (unknown fields found and dropped), SetDefaults fills it in, Validate and ValidateUpdate report
// everything that is wrong with it, and Status decides which of its names are accepted; Rules bundles these for the
// verbs. When the store's watch brings it, DecodeWithoutSchemas reads all but the schemas and Resource makes the
// catalog's entry, whose schemas are decoded when a request needs them. When it is deleted, the functions of
// deletion.go write the conditions that go with it.
//
// The specification is apiextensions.k8s.io/v1 of Kubernetes 1.36: field paths, error types and messages are those that
// a client of kube-apiserver sees. kube-apiserver validates the internal version of a definition, in which what all
// versions have in common (schema, subresources, columns, selectable fields) has moved from spec.versions[i] to spec;
// its paths show that ("spec.validation.openAPIV3Schema..."), so hoist.go makes the same arrangement.
//
// Everything here is pure: values in, values out. Definitions passed in are read only unless a comment says otherwise,
// and may be shared by goroutines.
package crd
