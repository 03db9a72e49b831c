package verb

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// decoder decodes request bodies into objects.
type decoder struct{ *decode.Kinds }

func newDecoder(c *catalog.Catalog, actions map[string]Action) *decoder {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, a := range actions {
		kinds[a.Kind] = true
		for _, version := range a.Older {
			kinds[a.Kind.GroupKind().WithVersion(version)] = true
		}
	}
	return &decoder{decode.NewKinds(c, kinds)}
}

// decode decodes a body into an object that fits the schema of the call's version: without unknown fields and
// disallowed nulls, with defaults. validation is the fieldValidation parameter, which decides how unknown and repeated
// fields are reported. documents are the documents in the body, as sent (codec.Documents).
func (d *decoder) decode(
	ctx context.Context, c *Call, body decode.Body, validation string,
) (obj object.Object, documents []string, err error) {
	strict := validation != metav1.FieldValidationIgnore
	obj, problems, err := decode.Read(ctx, body, strict, c.Kind(), c.Version.New)
	if err == nil && c.Version.New != nil {
		if err = d.Same(obj, c.Kind()); err != nil {
			if other := inVersionOf(c, obj); other != nil { // errors of the body's own version come first
				if _, _, wrong := d.decode(ctx, other, body, validation); wrong != nil {
					err = wrong
				}
			}
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	typedJSON := c.Version.New != nil && decode.IsJSON(body.Type)
	whole := typedJSON && decode.HasWholeFloat(obj)
	unknown, err := normalize(c, obj)
	if typedJSON && (err != nil || whole) && quantity.Plain(body.Data) {
		// Decoding into the Go type gives the exact error: the first of several, and integers written as 1.0.
		if exact := kjson.UnmarshalCaseSensitivePreserveInts(body.Data, c.Version.New()); exact != nil {
			err = exact
		}
	}
	if refused := refusedQuantity(c, obj, err); refused != nil {
		return nil, nil, refused
	}
	if err != nil {
		return nil, nil, codec.Unhandled(obj, err, c.Kind())
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	problems = append(problems, unknown...)
	if len(problems) > 0 && typedJSON {
		problems = decode.StrictProblems(body.Data, c.Version.New(), problems)
	}
	documents = decode.Documents(ctx, body, c.Version, c.Subresource)
	return obj, documents, decode.Report(ctx, c.Kind(), obj, problems, validation)
}

// inVersionOf returns the call in the version of its kind that obj names, or nil.
func inVersionOf(c *Call, obj object.Object) *Call {
	v := c.VersionOf(object.String(obj, "apiVersion"))
	if v == nil || v.New == nil || v == c.Version || object.String(obj, "kind") != c.Resource.Kind {
		return nil
	}
	return c.In(v)
}

// normalize prunes and defaults an object of the call's version. It returns the problems of its fields in the form
// `unknown field "spec.foo"`.
func normalize(c *Call, obj object.Object) (problems []string, err error) {
	unknown, err := objectmeta.Check(obj)
	if err != nil {
		if c.Version.New != nil {
			err = objectmeta.WithinKind(err, c.Resource.Kind)
		}
		return nil, err
	}
	rules := c.Strategy()
	if rules == nil || rules.Decode == nil {
		sch, err := c.Version.Schema()
		if err != nil {
			err = fmt.Errorf("schema of %s %s: %w", c.Resource.Qualified(), c.Version.Name, err)
			return nil, apierrors.NewInternalError(err)
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

// refusedQuantity returns the error for an object with a quantity that takes too long to compute with, nil if err is
// about something else.
func refusedQuantity(c *Call, obj object.Object, err error) error {
	return quantity.Refused(err, c.Kind().GroupKind(), object.String(object.Meta(obj), "name"))
}
