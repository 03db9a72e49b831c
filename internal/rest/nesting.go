package rest

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// maxNesting is the depth of collections that the libraries for JSON and YAML accept.
const maxNesting = 10_000

// refusedUnread reports whether the decoder of a body returns an error before it has used much memory. The client then
// gets that error, as from Kubernetes, although the elements of the whole body would be too many.
func refusedUnread(ctx context.Context, body decode.Body) bool {
	switch plainType(body.Type) {
	case codec.CBOR, string(types.ApplyCBORPatchType), codec.Protobuf:
		return false
	case codec.YAML:
		return nestedTooDeep(ctx, body.Data)
	case string(types.ApplyYAMLPatchType):
		return !json.Valid(body.Data) && nestedTooDeep(ctx, body.Data)
	}
	return !json.Valid(body.Data) // the decoder validates the whole document first
}

// nestedTooDeep reports whether a YAML document has an uninterrupted nest of too many collections. It decodes the
// document as far as the nest, and charges the request for that.
func nestedTooDeep(ctx context.Context, data []byte) bool {
	depth := 0
	for i, b := range data {
		if b != '[' && b != '{' {
			depth = 0
			continue
		}
		if depth++; depth > maxNesting {
			start := data[:i+1]
			if request.ChargeBody(ctx, len(start), charge.YAML(start)) != nil {
				return false
			}
			// In a text or a comment the nest is none, and the error is another one, or missing.
			_, err := codec.FromYAML(start)
			return err != nil && strings.Contains(err.Error(), "exceeded max depth")
		}
	}
	return false
}
