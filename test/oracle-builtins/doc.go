// Package oraclebuiltins compares the built-in kinds with Kubernetes itself: k8s.io/kubernetes, whose module says by a
// comment that it should not be imported, and which therefore stands in a module of its own with its staging
// repositories pinned by hand.
package oraclebuiltins
