// Package decode decodes the bodies of requests, applies patches to objects, and reports problems in Kubernetes' words.
//
// It runs before the rules of a kind. It covers the formats of bodies (JSON, YAML, CBOR, protobuf), unknown and
// repeated fields, and the set of kinds with Go types in kube-apiserver (Kinds). Schemas and defaults are the caller's
// task. Only Kinds has state.
package decode

import (
	"context"
	"math"
	"mime"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Body is the body of a request, with its media type.
type Body struct {
	Data []byte
	Type string
}

// HasWholeFloat reports whether v, decoded JSON, contains a whole number that was not written as an integer, such as
// 1.0 or 1e3.
func HasWholeFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return v == math.Trunc(v)
	case map[string]any:
		for _, e := range v {
			if HasWholeFloat(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, HasWholeFloat)
	}
	return false
}

// Into decodes obj, which Read returned for body, into a Go value of kind want. It returns the problems of the body's
// fields, including the problems in found, which Read returned.
func Into(
	obj object.Object, into any, want schema.GroupVersionKind, body Body, found []string,
) (problems []string, err error) {
	if err := quantity.Object(reflect.TypeOf(into), obj); err != nil {
		return nil, quantity.Refused(err, want.GroupKind(), "")
	}
	unknown, err := kjson.UnmarshalStrict(codec.AppendJSON(nil, obj), into, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, codec.Unhandled(obj, err, want)
	}
	for _, e := range unknown {
		found = append(found, e.Error())
	}
	if len(found) > 0 && IsJSON(body.Type) {
		return StrictProblems(body.Data, into, found), nil
	}
	return found, nil
}

// IsJSON reports whether a body of the media type is JSON.
func IsJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && mediaType == codec.JSON
}

// StrictProblems returns the field problems of a body of into's type, in the order of the body. A repeated unknown
// field is reported only once. found holds the same problems without order and type.
// They are all there is to return about a body with quantities that take long to decode: a repeated field may hide one.
func StrictProblems(body []byte, into any, found []string) []string {
	if !quantity.Plain(body) {
		return found
	}
	errs, err := kjson.UnmarshalStrict(body, into)
	if err != nil || len(errs) == 0 {
		return found
	}
	problems := make([]string, len(errs))
	for i, e := range errs {
		problems[i] = e.Error()
	}
	return problems
}

// Read decodes a body of kind want in any supported format. message returns a new Go value of the kind, for protobuf;
// nil means that the kind has no protobuf format. With a message, the kind and version of obj come from the body and
// may differ from want.
func Read(
	ctx context.Context, body Body, strict bool, want schema.GroupVersionKind, message func() any,
) (obj object.Object, problems []string, err error) {
	mediaType, err := codec.BodyType(ctx, body.Type)
	switch {
	case err != nil:
		return nil, nil, err
	case mediaType == codec.CBOR && message != nil:
		obj, err = codec.DecodeTypedCBOR(body.Data, want)
		return obj, nil, err
	case mediaType == codec.CBOR:
		obj, err = codec.DecodeCBOR(body.Data, want)
		return obj, nil, err
	case mediaType == codec.Protobuf && message != nil:
		if err := measure(body.Data, message(), want); err != nil {
			return nil, nil, err
		}
		if body.Data, err = codec.ReadProtobuf(body.Data, message(), want); err != nil {
			return nil, nil, err
		}
		body.Type = codec.JSON
	}
	if message != nil {
		return codec.DecodeTyped(body.Data, body.Type, strict, want)
	}
	return codec.DecodeObject(body.Data, body.Type, strict, want)
}

// measure returns the answer to a protobuf body of a kind with a quantity that takes too long to decode, or nil.
func measure(data []byte, into any, want schema.GroupVersionKind) error {
	envelope, err := codec.OpenEnvelope(data)
	if err != nil {
		return nil // decoding returns it too
	}
	return quantity.Refused(quantity.Message(reflect.TypeOf(into), envelope.Raw), want.GroupKind(), "")
}

// Documents returns the texts of the documents (codec.Documents) in a body decoded by Read. It includes only fields
// that the subresource may write: the status, or everything else. YAML and CBOR have no such texts.
func Documents(ctx context.Context, body Body, v *catalog.Version, subresource string) []string {
	if !v.HoldsDocuments() {
		return nil
	}
	into := v.New()
	mediaType, err := codec.BodyType(ctx, body.Type)
	switch {
	case err != nil:
	case mediaType == codec.JSON && !quantity.Plain(body.Data):
	case mediaType == codec.JSON:
		err = kjson.UnmarshalCaseSensitivePreserveInts(body.Data, into)
	case mediaType == codec.Protobuf:
		_, err = codec.FromProtobuf(body.Data, into)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return codec.Documents(into, func(field string) bool {
		return !v.Status || (field == "status") == (subresource == "status")
	})
}

// Report turns problems in the fields of an object into warnings or an error, according to the fieldValidation
// parameter. want is the expected kind.
func Report(
	ctx context.Context, want schema.GroupVersionKind, obj object.Object, problems []string, validation string,
) error {
	switch {
	case len(problems) == 0 || validation == metav1.FieldValidationIgnore:
		return nil
	case validation == metav1.FieldValidationStrict:
		return codec.StrictError(obj, problems, want)
	}
	Warn(ctx, problems)
	return nil
}

// Warn sends warnings about field problems. YAML's decoder reports all repeated keys in one text with many lines; Warn
// sends a warning for each line.
func Warn(ctx context.Context, problems []string) {
	for _, p := range problems {
		lines, isYAML := strings.CutPrefix(strings.TrimPrefix(p, "error converting YAML to JSON: "),
			"yaml: unmarshal errors:\n")
		if !isYAML {
			request.Warn(ctx, p)
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			request.Warn(ctx, strings.TrimSpace(line))
		}
	}
}

// StrictText returns the error text for field problems.
func StrictText(problems []string) string {
	return "strict decoding error: " + strings.Join(problems, ", ")
}
