// Package crd turns CustomResourceDefinitions into resources of the catalog.
//
// A definition passes through this package three times. When a client writes it, Normalize brings the decoded body into
// the form of the Go type (and finds and drops unknown fields), SetDefaults sets defaults, Validate and ValidateUpdate
// report all errors, and Status decides about the acceptance of its names; Rules bundles these for the verbs. When the
// store's watch delivers it, DecodeWithoutSchemas decodes everything except the schemas, and Resource creates the
// catalog's entry, which decodes schemas on demand. When it is deleted, the functions of deletion.go write the
// conditions.
//
// The specification is apiextensions.k8s.io/v1 of Kubernetes 1.36: clients see kube-apiserver's field paths, error
// types and messages. kube-apiserver validates the internal version of a definition, which moves the parts common to
// all versions (schema, subresources, columns, selectable fields) from spec.versions[i] to spec. Its paths show that
// ("spec.validation.openAPIV3Schema..."), so hoist.go makes the same arrangement.
//
// Everything here is pure: values in, values out. Unless noted otherwise, definitions passed in are read only and may
// be shared by goroutines.
package crd
