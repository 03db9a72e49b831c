// Package schema compares internal/schema with apiextensions-apiserver's structural schema packages.
package schema
