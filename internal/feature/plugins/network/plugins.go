// Package network holds the admission plugins for kinds of the group networking.k8s.io, one file each. testdata holds
// their cases; test/oracle-builtins runs the same cases through Kubernetes' own plugins. Package plugin defines the
// parts of a plugin, and package plugins the order of the chain.
package network
