// Package builtin compares internal/kinds with the published Go types, with the schemas that client-go's apply
// configurations carry, and with the OpenAPI definitions that apiextensions-apiserver generates.
package builtin
