// Package lists contains only a test: it writes objects with long lists in every place of every built-in kind, and
// looks for costs that grow with the square of the length.
package lists
