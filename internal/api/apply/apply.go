// Package apply applies patches to objects and tracks field ownership.
//
// On the request path it stands between the decoded body and validation. JSONPatch, MergePatch and StrategicMerge
// compute the new object of a PATCH. An Ownership maintains metadata.managedFields on every write and implements
// server-side apply (KEP-555).
//
// Ownership gives the same results as k8s.io/apimachinery/pkg/util/managedfields for custom resources, entry for entry.
// The common cases (a create, an update, a repeated apply of the same fields) take a short way on decoded JSON and the
// compiled schema. Every doubtful case takes the long way through sigs.k8s.io/structured-merge-diff, which is the
// specification. Tests compare both ways on random schemas and objects, and both with Kubernetes' own field manager.
//
// Everything is pure: no clock, no I/O. An Ownership is immutable and safe for concurrent use.
package apply
