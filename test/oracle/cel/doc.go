// Package cel compares internal/object/schema/cel with apiextensions-apiserver's CEL validator and its checks of
// definitions.
package cel
