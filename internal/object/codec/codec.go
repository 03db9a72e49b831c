// Package codec converts between bytes and objects at the edge of a request.
//
// It stands at both ends of the request path: DecodeObject decodes a body, Negotiate selects the form of the response
// from the Accept header, WriteObject and WriteError write it. In between an object is decoded JSON: map[string]any,
// []any, string, bool, int64, float64 or nil. Numbers without a point that fit are int64, all others float64, as in
// sigs.k8s.io/json. AppendJSON's output equals encoding/json's for the same value, so that stored bytes equal those of
// kube-apiserver.
//
// WriteError is the only place where an error becomes a metav1.Status: other code returns ordinary errors, or a
// *apierrors.StatusError where the text is part of the API.
//
// Functions hold no state between calls except pools of buffers, and are safe for concurrent use.
package codec

import "slices"

// Supported media types.
const (
	JSON = "application/json"
	YAML = "application/yaml"
	// Protobuf is supported for built-in kinds, and for metadata and Status of every kind.
	Protobuf = "application/vnd.kubernetes.protobuf"
	// CBOR is supported only if enabled, see WithCBOR.
	CBOR = "application/cbor"
	// cborSequence is the media type of a watch in CBOR, a sequence of items.
	cborSequence = "application/cbor-seq"
)

// supported returns the types for a message, in Kubernetes' order; suffix is appended to each.
func supported(suffix string, types ...string) []string {
	types = slices.Clone(types)
	for i := range types {
		types[i] += suffix
	}
	return types
}
