// Package explain has the commands that report reasons: why a request is refused (why-denied), and why an object that
// is being deleted remains (why-stuck).
package explain
