// Package lint holds the rules of this repository that no compiler knows: which package may import which, and what
// never enters the binary. It has tests only. To change a rule, change its table there, on purpose, and
// docs/design/imports.md.
package lint
