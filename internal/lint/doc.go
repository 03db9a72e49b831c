// Package lint checks the rules of this repository that the compiler does not: the allowed imports of packages, and
// dependencies that must not enter the binary. It has only tests. To change a rule, deliberately change its table
// there, and docs/design/imports.md.
package lint
