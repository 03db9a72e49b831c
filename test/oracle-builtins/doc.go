// Package oraclebuiltins compares the built-in kinds with Kubernetes itself: k8s.io/kubernetes. Its module asks in a
// comment not to be imported. So this package is a module of its own that pins the staging repositories by hand.
package oraclebuiltins
