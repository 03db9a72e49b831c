// Package builtin compares internal/builtin with the published Go types, with the schemas that client-go's apply
// configurations carry, and with the OpenAPI definitions that apiextensions-apiserver generates.
package builtin
