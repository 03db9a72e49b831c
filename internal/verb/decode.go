package verb

import (
	"context"
	"fmt"
	"math"
	"mime"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// decoder makes objects of bodies.
type decoder struct {
	catalog *catalog.Catalog
	// kinds are those of the bodies of actions, which no resource has.
	kinds map[schema.GroupVersionKind]bool
}

func newDecoder(c *catalog.Catalog, actions map[string]Action) *decoder {
	d := &decoder{catalog: c, kinds: map[schema.GroupVersionKind]bool{}}
	for _, a := range actions {
		d.kinds[a.Kind] = true
		for _, version := range a.Older {
			d.kinds[a.Kind.GroupKind().WithVersion(version)] = true
		}
	}
	return d
}

// decode turns a body into an object that fits the schema of the call's version: unknown fields and disallowed nulls
// are gone, defaults are filled in. validation is the fieldValidation parameter and decides what unknown and repeated
// fields lead to.
func (d *decoder) decode(ctx context.Context, c *Call, body Body, validation string) (object.Object, error) {
	strict := validation != metav1.FieldValidationIgnore
	obj, problems, err := decodeBody(ctx, body, strict, c.Kind(), c.Version.New)
	if err == nil && c.Version.New != nil {
		if err = d.sameKind(obj, c.Kind()); err != nil {
			if other := c.inVersionOf(obj); other != nil { // what is wrong in that version comes first
				if _, wrong := d.decode(ctx, other, body, validation); wrong != nil {
					err = wrong
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	typedJSON := c.Version.New != nil && isJSON(body.Type)
	whole := typedJSON && hasWholeFloat(obj)
	unknown, err := c.normalize(obj)
	if typedJSON && (err != nil || whole) {
		// The body says it better: which of several errors comes first, and that an integer is written as 1.0.
		if said := kjson.UnmarshalCaseSensitivePreserveInts(body.Data, c.Version.New()); said != nil {
			err = said
		}
	}
	if err != nil {
		return nil, codec.Unhandled(obj, err, c.Kind())
	}
	problems = append(problems, unknown...)
	if len(problems) > 0 && typedJSON {
		problems = strictProblems(body.Data, c.Version.New(), problems)
	}
	return obj, c.report(ctx, obj, problems, validation)
}

// inVersionOf returns the call in the version of its kind that obj says it is of, nil if there is none.
func (c *Call) inVersionOf(obj object.Object) *Call {
	v := c.version(object.String(obj, "apiVersion"))
	if v == nil || v.New == nil || v == c.Version || object.String(obj, "kind") != c.Resource.Kind {
		return nil
	}
	other := *c
	other.Version = v
	return &other
}

// hasWholeFloat reports whether v, decoded JSON, has a number without a fraction that was not written as an integer:
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
	obj object.Object, into any, want schema.GroupVersionKind, body Body, found []string,
) (problems []string, err error) {
	unknown, err := kjson.UnmarshalStrict(codec.AppendJSON(nil, obj), into, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, codec.Unhandled(obj, err, want)
	}
	for _, e := range unknown {
		found = append(found, e.Error())
	}
	if len(found) > 0 && isJSON(body.Type) {
		return strictProblems(body.Data, into, found), nil
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
		if body.Data, err = codec.FromProtobuf(body.Data, message()); err != nil {
			return nil, nil, err
		}
		body.Type = codec.JSON
	}
	if message != nil {
		return codec.DecodeTyped(body.Data, body.Type, strict, want)
	}
	return codec.DecodeObject(body.Data, body.Type, strict, want)
}

// normalize prunes and defaults an object of the call's version and returns what is wrong with its fields, in the form
// `unknown field "spec.foo"`.
func (c *Call) normalize(obj object.Object) (problems []string, err error) {
	unknown, err := checkMeta(obj)
	if err != nil {
		return nil, c.metaError(err)
	}
	rules := c.Strategy()
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
func (c *Call) report(ctx context.Context, obj object.Object, problems []string, validation string) error {
	return reportAs(ctx, c.Kind(), obj, problems, validation)
}

// reportAs is report for an object that should be of kind want.
func reportAs(
	ctx context.Context, want schema.GroupVersionKind, obj object.Object, problems []string, validation string,
) error {
	switch {
	case len(problems) == 0 || validation == metav1.FieldValidationIgnore:
		return nil
	case validation == metav1.FieldValidationStrict:
		return codec.StrictError(obj, problems, want)
	}
	warnStrict(ctx, problems)
	return nil
}

// warnStrict warns of problems with fields. YAML's decoder reports all repeated keys in one text of many lines, which
// become a warning each.
func warnStrict(ctx context.Context, problems []string) {
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

func strictText(problems []string) string {
	return "strict decoding error: " + strings.Join(problems, ", ")
}
