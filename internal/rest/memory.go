package rest

import (
	"encoding/json"
	"mime"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// chargeBody charges a request for its body, before anything decodes it. message makes the Go value that a protobuf
// body is decoded into; nil means that it is not known.
func chargeBody(r *http.Request, body decode.Body, message func() any) error {
	if len(body.Data) == 0 {
		return nil
	}
	return request.ChargeBody(r.Context(), len(body.Data), weigh(body, message))
}

// certain is the weight, in bytes, from which weigh finds out whether the body of an apply is JSON.
const certain = 1 << 20

// weigh estimates the memory of a body. A media type that the server does not read is refused before it is decoded.
func weigh(body decode.Body, message func() any) int64 {
	mediaType := body.Type
	switch mediaType {
	case "", codec.JSON:
		return charge.JSON(body.Data)
	}
	if parsed, _, err := mime.ParseMediaType(mediaType); err == nil {
		mediaType = parsed
	}
	switch mediaType {
	case codec.YAML:
		return charge.YAML(body.Data)
	case string(types.ApplyYAMLPatchType):
		weight := charge.YAML(body.Data)
		if weight > certain && json.Valid(body.Data) { // the decoder tries JSON first
			return charge.JSON(body.Data)
		}
		return weight
	case codec.CBOR, string(types.ApplyCBORPatchType):
		return charge.CBOR(body.Data)
	case codec.Protobuf:
		return weighMessage(body.Data, message)
	}
	return charge.JSON(body.Data)
}

// weighMessage estimates the memory of a protobuf document.
func weighMessage(data []byte, message func() any) int64 {
	envelope, err := codec.OpenEnvelope(data)
	if err != nil {
		return 0 // the decoder stops there too
	}
	if message == nil {
		return charge.Unknown(envelope.Raw)
	}
	return charge.Protobuf(envelope.Raw, reflect.TypeOf(message()).Elem())
}
