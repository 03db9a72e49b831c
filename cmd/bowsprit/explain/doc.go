// Package explain has the commands that say why: why a request is refused (why-denied), and why an object that is being
// deleted does not go away (why-stuck).
package explain
