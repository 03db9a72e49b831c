package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// maxBody is the largest request body, as in kube-apiserver: what JSON of the largest etcd value can come to.
const maxBody = 3 << 20

// readBody reads a request's body up to maxBody bytes.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, bodyTooLarge(maxBody)
	}
	buf := make([]byte, 0, max(r.ContentLength, 512))
	limited := io.LimitReader(r.Body, maxBody+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := limited.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if len(buf) > maxBody {
			return nil, bodyTooLarge(maxBody)
		}
		switch {
		case err == io.EOF:
			return buf, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, apierrors.NewBadRequest("the request body ended before its declared length: unexpected EOF")
		case err != nil:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("read the request body: %v", err))
		}
	}
}

// decode turns a body into an object that fits the schema of the call's version: unknown fields and disallowed nulls
// are gone, defaults are filled in. validation is the fieldValidation parameter and decides what unknown and repeated
// fields lead to.
func (s *Server) decode(ctx context.Context, c *Call, body []byte, contentType, validation string) (Object, error) {
	obj, problems, err := decodeBody(ctx, body, contentType, validation != metav1.FieldValidationIgnore, c.gvk(),
		c.Version.New)
	if err == nil && c.Version.New != nil {
		if err = s.sameKind(obj, c.gvk()); err != nil {
			if other := c.inVersionOf(obj); other != nil { // what is wrong in that version comes first
				if _, wrong := s.decode(ctx, other, body, contentType, validation); wrong != nil {
					err = wrong
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	typedJSON := c.Version.New != nil && isJSON(contentType)
	whole := typedJSON && hasWholeFloat(obj)
	unknown, err := c.normalize(obj)
	if typedJSON && (err != nil || whole) {
		// The body says it better: which of several errors comes first, and that an integer is written as 1.0.
		if said := kjson.UnmarshalCaseSensitivePreserveInts(body, c.Version.New()); said != nil {
			err = said
		}
	}
	if err != nil {
		return nil, codec.Unhandled(obj, err, c.gvk())
	}
	problems = append(problems, unknown...)
	if len(problems) > 0 && typedJSON {
		problems = strictProblems(body, c.Version.New(), problems)
	}
	return obj, c.report(ctx, obj, problems, validation)
}

// inVersionOf returns the call in the version of its kind that obj says it is of, nil if there is none.
func (c *Call) inVersionOf(obj Object) *Call {
	v := c.version(object.String(obj, "apiVersion"))
	if v == nil || v.New == nil || v == c.Version || object.String(obj, "kind") != c.Resource.Kind {
		return nil
	}
	other := *c
	other.Version = v
	return &other
}

// hasWholeFloat tells whether v, decoded JSON, has a number without a fraction that was not written as an integer:
// 1.0, 1e3.
func hasWholeFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return v == math.Trunc(v)
	case map[string]any:
		for _, e := range v {
			if hasWholeFloat(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasWholeFloat)
	}
	return false
}

// readInto puts obj, which decodeBody has made of body, into a Go value of kind want, and returns what is wrong with
// the body's fields; found is what decodeBody has found.
func readInto(
	obj Object, into any, want schema.GroupVersionKind, body []byte, contentType string, found []string,
) (problems []string, err error) {
	unknown, err := kjson.UnmarshalStrict(codec.AppendJSON(nil, obj), into, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, codec.Unhandled(obj, err, want)
	}
	for _, e := range unknown {
		found = append(found, e.Error())
	}
	if len(found) > 0 && isJSON(contentType) {
		return strictProblems(body, into, found), nil
	}
	return found, nil
}

func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && mediaType == codec.JSON
}

// strictProblems returns what is wrong with the fields of a body of into's type, in the order of the body. A field
// that is unknown is not looked at again when it comes twice. found is the same without regard to order and type.
func strictProblems(body []byte, into any, found []string) []string {
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

// decodeBody decodes a body of kind want in any form that the server reads. message makes a fresh Go value of the
// kind, for protobuf; nil means that it has no such form. With one the kind and version of obj are the body's and may
// be others.
func decodeBody(
	ctx context.Context, body []byte, contentType string, strict bool, want schema.GroupVersionKind, message func() any,
) (obj Object, problems []string, err error) {
	mediaType, err := codec.BodyType(ctx, contentType)
	switch {
	case err != nil:
		return nil, nil, err
	case mediaType == codec.CBOR && message != nil:
		obj, err = codec.DecodeTypedCBOR(body, want)
		return obj, nil, err
	case mediaType == codec.CBOR:
		obj, err = codec.DecodeCBOR(body, want)
		return obj, nil, err
	case mediaType == codec.Protobuf && message != nil:
		if body, err = codec.FromProtobuf(body, message()); err != nil {
			return nil, nil, err
		}
		contentType = codec.JSON
	}
	if message != nil {
		return codec.DecodeTyped(body, contentType, strict, want)
	}
	return codec.DecodeObject(body, contentType, strict, want)
}

// normalize prunes and defaults an object of the call's version and returns what is wrong with its fields, in the form
// `unknown field "spec.foo"`.
func (c *Call) normalize(obj Object) (problems []string, err error) {
	unknown, err := checkMeta(obj)
	if err != nil {
		return nil, c.metaError(err)
	}
	rules := c.strategy()
	if rules == nil || rules.Decode == nil {
		sch, err := c.Version.Schema()
		if err != nil {
			return nil,
				apierrors.NewInternalError(fmt.Errorf("schema of %s %s: %w", c.Resource.Qualified(), c.Version.Name,
					err))
		}
		if sch != nil {
			more, err := sch.NormalizeRequest(obj)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
	}
	if rules != nil {
		if rules.Decode != nil {
			more, err := rules.Decode(obj)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
		if rules.Default != nil {
			rules.Default(obj)
		}
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return problems, nil
}

// report turns problems with fields into warnings or an error, by the fieldValidation parameter.
func (c *Call) report(ctx context.Context, obj Object, problems []string, validation string) error {
	return c.reportAs(ctx, c.gvk(), obj, problems, validation)
}

// reportAs is report for an object that should be of kind want.
func (c *Call) reportAs(
	ctx context.Context, want schema.GroupVersionKind, obj Object, problems []string, validation string,
) error {
	switch {
	case len(problems) == 0 || validation == metav1.FieldValidationIgnore:
		return nil
	case validation == metav1.FieldValidationStrict:
		return codec.StrictError(obj, problems, want)
	}
	c.warnStrict(ctx, problems)
	return nil
}

// warnStrict warns of problems with fields. YAML's decoder reports all repeated keys in one text of many lines, which
// become a warning each.
func (c *Call) warnStrict(ctx context.Context, problems []string) {
	for _, p := range problems {
		lines, isYAML := strings.CutPrefix(strings.TrimPrefix(p, "error converting YAML to JSON: "),
			"yaml: unmarshal errors:\n")
		if !isYAML {
			c.warn(ctx, p)
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			c.warn(ctx, strings.TrimSpace(line))
		}
	}
}

func strictText(problems []string) string {
	return "strict decoding error: " + strings.Join(problems, ", ")
}

// New completes an object that a program makes for Create: kind, apiVersion and defaults.
func (s *Server) New(c *Call, obj Object) (Object, error) {
	obj["apiVersion"], obj["kind"] = c.apiVersion(), c.Resource.Kind
	_, err := c.normalize(obj)
	return obj, err
}
