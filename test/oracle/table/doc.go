// Package table compares internal/api/table with apiextensions-apiserver's tableconvertor.
package table
