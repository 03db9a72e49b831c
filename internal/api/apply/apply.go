// Package apply changes objects: patches, and who owns which field.
//
// On the request path it stands between the decoded body and validation. JSONPatch, MergePatch and StrategicMerge make
// the new object of a PATCH; an Ownership keeps metadata.managedFields on every write and does server-side apply
// (KEP-555).
//
// Ownership answers as k8s.io/apimachinery/pkg/util/managedfields does for custom resources, entry for entry. The
// common cases (a create, an update, an apply of the same fields again) take a short way that works on decoded JSON
// and on the compiled schema; whatever it is not sure of goes the long way, through sigs.k8s.io/structured-merge-diff,
// which is the specification. Tests compare both on random schemas and objects, and both with Kubernetes' own field
// manager.
//
// Everything is pure: no clock, no I/O. An Ownership is immutable and safe for concurrent use.
package apply
