// Package codec turns bytes into objects and objects into bytes, at the edge of a request.
//
// It stands at both ends of the request path: DecodeObject reads a body, Negotiate decides from the Accept header what
// the client gets, WriteObject and WriteError write it. In between an object is decoded JSON: map[string]any, []any,
// string, bool, int64, float64 or nil. Numbers without a point that fit are int64, all others float64, as
// sigs.k8s.io/json decodes them; AppendJSON writes what encoding/json writes for the same value, so that stored bytes
// equal those of kube-apiserver.
//
// WriteError is the one place where an error becomes a metav1.Status: everything else returns ordinary errors, or a
// *apierrors.StatusError where the text is part of the API.
//
// Functions hold no state between calls except pools of buffers, and are safe for concurrent use.
package codec

import "slices"

// Media types that the server reads and writes.
const (
	JSON = "application/json"
	YAML = "application/yaml"
	// Protobuf is spoken by built-in kinds, and by what every kind has in it: its metadata alone, and Status.
	Protobuf = "application/vnd.kubernetes.protobuf"
	// CBOR is spoken if the server is told to, see WithCBOR.
	CBOR = "application/cbor"
	// cborSequence is what a watch in CBOR is called: one item after the other.
	cborSequence = "application/cbor-seq"
)

// supported returns what messages list, in kube's order; suffix is appended to each.
func supported(suffix string, types ...string) []string {
	types = slices.Clone(types)
	for i := range types {
		types[i] += suffix
	}
	return types
}
