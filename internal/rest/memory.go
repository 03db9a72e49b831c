package rest

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// chargeBody charges a request for its body, before anything decodes it. message makes the Go value that a protobuf
// body is decoded into; nil means that it is not known.
func chargeBody(r *http.Request, body decode.Body, message func() any) error {
	if len(body.Data) == 0 {
		return nil
	}
	err := request.ChargeBody(r.Context(), len(body.Data), weigh(body, message))
	if apierrors.IsRequestEntityTooLargeError(err) && refusedUnread(r.Context(), body) {
		return nil
	}
	return err
}

// plainType returns a media type without its parameters.
func plainType(mediaType string) string {
	if parsed, _, err := mime.ParseMediaType(mediaType); err == nil {
		return parsed
	}
	return mediaType
}

// certain is the weight, in bytes, from which weigh finds out whether the body of an apply is JSON.
const certain = 1 << 20

// weigh estimates the memory of a body. A media type that the server does not read is refused before it is decoded.
func weigh(body decode.Body, message func() any) int64 {
	switch body.Type {
	case "", codec.JSON:
		return charge.JSON(body.Data)
	}
	switch plainType(body.Type) {
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

// streamed reports whether responses in this form are the stored bytes, written object by object.
func (f form) streamed() bool { return f.Type == codec.JSON && f.As == "" && !f.Pretty }

// holdEntry charges a request for a stored object in its response. The object is decoded for each form but one.
func holdEntry(ctx context.Context, f form, e *watchcache.Entry) error {
	if f.streamed() {
		return nil
	}
	return decode.Hold(ctx, e)
}

// holdPage charges a request for the list in its response: for its largest object if objects are decoded, one after the
// other, and for its text if the response is built in memory.
func holdPage(ctx context.Context, c *verb.Call, f form, p *verb.Page) error {
	audited := c.Audit != nil && c.Audit.Answers()
	if f.streamed() && !audited || len(p.Entries) == 0 {
		return nil
	}
	largest, text := p.Entries[0], 0
	for _, e := range p.Entries {
		text += e.Size()
		if e.Size() > largest.Size() {
			largest = e
		}
	}
	if err := holdEntry(ctx, f, largest); err != nil {
		return err
	}
	whole := f.Pretty || f.Type == codec.YAML || f.As == "Table" && f.include == metav1.IncludeObject
	if !audited && !whole {
		return nil
	}
	return request.Hold(ctx, int64(text))
}
