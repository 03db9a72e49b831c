// Package table compares internal/table with apiextensions-apiserver's tableconvertor.
package table
