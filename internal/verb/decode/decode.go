// Package decode makes objects of the bodies of requests, of patches with the object that they change, and says what is
// wrong with them in kube's words.
//
// It stands before the rules of a kind: it knows the forms that a body may come in (JSON, YAML, CBOR, protobuf), the
// fields that are unknown or come twice, and which kinds have Go types in kube-apiserver (Kinds), and leaves schemas
// and defaults to its callers. All but Kinds is without state.
package decode

import (
	"context"
	"math"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// A Body is what a client sent, with its media type.
type Body struct {
	Data []byte
	Type string
}

// HasWholeFloat reports whether v, decoded JSON, has a number without a fraction that was not written as an integer:
// 1.0, 1e3.
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

// Into puts obj, which Read has made of body, into a Go value of kind want, and returns what is wrong with the
// body's fields; found is what Read has found.
func Into(
	obj object.Object, into any, want schema.GroupVersionKind, body Body, found []string,
) (problems []string, err error) {
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

// StrictProblems returns what is wrong with the fields of a body of into's type, in the order of the body. A field
// that is unknown is not looked at again when it comes twice. found is the same without regard to order and type.
func StrictProblems(body []byte, into any, found []string) []string {
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

// Read decodes a body of kind want in any form that the server reads. message makes a fresh Go value of the
// kind, for protobuf; nil means that it has no such form. With one the kind and version of obj are the body's and may
// be others.
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

// Documents returns the texts of the documents (codec.Documents) within a body of a version's kind that Read has read,
// in the fields that a write to the subresource takes, which are all but the status, or that alone. YAML and CBOR have
// no such texts.
func Documents(ctx context.Context, body Body, v *catalog.Version, subresource string) []string {
	if !v.HoldsDocuments() {
		return nil
	}
	into := v.New()
	mediaType, err := codec.BodyType(ctx, body.Type)
	switch {
	case err != nil:
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

// Report turns problems with fields of an object that should be of kind want into warnings or an error, by the
// fieldValidation parameter.
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

// Warn warns of problems with fields. YAML's decoder reports all repeated keys in one text of many lines, which
// become a warning each.
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

// StrictText is what an error says of problems with fields.
func StrictText(problems []string) string {
	return "strict decoding error: " + strings.Join(problems, ", ")
}
