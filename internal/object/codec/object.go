package codec

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// DecodeObject decodes the body of a create or update, in JSON or YAML by contentType ("" is JSON).
//
// strict also checks for duplicate fields. They are returned in Kubernetes' wording (`duplicate field "spec.foo"`)
// together with the object, because the caller decides by fieldValidation whether they are warnings or, with its own
// unknown fields, an error (StrictError). want is the kind of the endpoint. The error is a *apierrors.StatusError with
// kube-apiserver's text: 415 for another content type, 400 for a body that is empty, malformed, not an object, has no
// kind, or has another apiVersion than want. The value of kind is not compared: Kubernetes does that in validation.
func DecodeObject(data []byte, contentType string, strict bool, want schema.GroupVersionKind) (obj map[string]any,
	strictErrs []string, err error) {
	obj, strictErrs, err = decodeObject(contentType, body{original: data, json: data, strict: strict, want: want})
	if err != nil {
		return nil, nil, err
	}
	apiVersion, _ := obj["apiVersion"].(string)
	if got, _ := schema.ParseGroupVersion(apiVersion); got != want.GroupVersion() {
		return nil, nil, OtherVersion(got, want.GroupVersion())
	}
	return obj, strictErrs, nil
}

// DecodeTyped is DecodeObject for a kind with a Go type in Kubernetes. A body without apiVersion and kind counts as
// want, and they are set in obj; the caller must refuse a body of another kind or version.
func DecodeTyped(data []byte, contentType string, strict bool, want schema.GroupVersionKind) (obj map[string]any,
	strictErrs []string, err error) {
	return decodeObject(contentType, body{original: data, json: data, strict: strict, want: want, typed: true})
}

// OtherVersion is the error for a body of another version than the endpoint's.
func OtherVersion(got, want schema.GroupVersion) error {
	return apierrors.NewBadRequest(
		fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
}

func decodeObject(contentType string, b body) (obj map[string]any, strictErrs []string, err error) {
	mediaType, err := bodyType(contentType)
	if err != nil {
		return nil, nil, err
	}
	if mediaType == YAML {
		if b.json, err = FromYAML(b.original); err != nil {
			return nil, nil, b.unrecognized(err)
		}
		if b.strict {
			if _, err := yaml.YAMLToJSONStrict(b.original); err != nil {
				strictErrs = append(strictErrs, err.Error())
			}
		}
	}
	obj, duplicates, err := b.decode()
	if err != nil {
		return nil, nil, err
	}
	return obj, append(strictErrs, duplicates...), nil
}

// StrictError is the error of fieldValidation=Strict: duplicate fields, then unknown ones. obj is the decoded body.
func StrictError(obj map[string]any, strictErrs []string, want schema.GroupVersionKind) error {
	return Unhandled(obj, errors.New("strict decoding error: "+strings.Join(strictErrs, ", ")), want)
}

// Unhandled is the error for a body that is an object but not of kind want; err is the reason.
func Unhandled(obj map[string]any, err error, want schema.GroupVersionKind) error {
	kind, _ := obj["kind"].(string)
	apiVersion, _ := obj["apiVersion"].(string)
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return unhandled(gv.WithKind(kind), err, want)
}

func unhandled(got schema.GroupVersionKind, err error, want schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version,
		want.Kind, err))
}

// BodyType returns the media type of the body of a create or update, one of Offered. The error is a
// *apierrors.StatusError, 415.
func BodyType(ctx context.Context, contentType string) (string, error) {
	switch contentType {
	case "", JSON:
		return JSON, nil
	}
	offered := Offered(ctx)
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && slices.Contains(offered, mediaType) {
		return mediaType, nil
	}
	return "", UnsupportedMediaType(offered...)
}

// bodyType returns the media type of a body: JSON or YAML.
func bodyType(contentType string) (string, error) {
	switch contentType {
	case "", JSON:
		return JSON, nil
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && (mediaType == JSON || mediaType == YAML) {
		return mediaType, nil
	}
	return "", UnsupportedMediaType(JSON, YAML, Protobuf)
}

// UnsupportedMediaType is the 415 for a body with a Content-Type that is not in types.
func UnsupportedMediaType(types ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(types, ", "),
	}}
}

// body is the input of one DecodeObject.
type body struct {
	original []byte // as sent, for messages
	json     []byte
	strict   bool
	want     schema.GroupVersionKind
	typed    bool // want applies to a body without kind and apiVersion
}

func (b *body) decode() (obj map[string]any, duplicates []string, err error) {
	v, repeated, err := decode(b.json)
	obj, isObject := v.(map[string]any)
	apiVersion, _ := obj["apiVersion"].(string)
	gv, badVersion := schema.ParseGroupVersion(apiVersion)
	actual := &schema.GroupVersionKind{Group: gv.Group, Version: gv.Version}
	if err != nil || !isObject || repeated || !typed(obj) {
		// Kubernetes first reads only kind and apiVersion, with encoding/json and so ignoring case: its errors precede
		// errors in the rest.
		if actual, err = serializerjson.DefaultMetaFactory.Interpret(b.json); err != nil {
			return nil, nil, b.unrecognized(err)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(b.json, &map[string]any{}); err != nil {
			return nil, nil, unhandled(b.defaulted(*actual), err, b.want)
		}
	}
	if badVersion != nil {
		return nil, nil, b.unrecognized(badVersion)
	}
	if b.typed {
		if obj == nil { // null, which leaves a Go value of the kind empty
			obj = map[string]any{}
		}
		whole := b.defaulted(gv.WithKind(text(obj["kind"])))
		obj["kind"], obj["apiVersion"] = whole.Kind, whole.GroupVersion().String()
	}
	if text(obj["kind"]) == "" {
		if b.strict {
			return nil, nil, b.unrecognized(runtime.NewMissingKindErr(string(b.original)))
		}
		missing := runtime.NewMissingKindErr(strings.TrimSpace(string(b.json)))
		return nil, nil, unhandled(b.defaulted(*actual), missing, b.want)
	}
	if repeated && b.strict {
		errs, _ := kjson.UnmarshalStrict(b.json, &map[string]any{})
		for _, err := range errs {
			duplicates = append(duplicates, err.Error())
		}
	}
	return obj, duplicates, nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// typed reports whether kind and apiVersion, where present, are strings, and no other field differs from them only in
// case.
func typed(obj map[string]any) bool {
	for name, v := range obj {
		if strings.EqualFold(name, "kind") || strings.EqualFold(name, "apiVersion") {
			if _, ok := v.(string); !ok || name != "kind" && name != "apiVersion" {
				return false
			}
		}
	}
	return true
}

// defaulted fills missing parts of got from want, like Kubernetes before it decodes the rest of a body.
func (b *body) defaulted(got schema.GroupVersionKind) schema.GroupVersionKind {
	if got.Kind == "" {
		got.Kind = b.want.Kind
	}
	if got.Version == "" && (got.Group == "" || got.Group == b.want.Group) {
		got.Group, got.Version = b.want.Group, b.want.Version
	}
	return got
}

func (b *body) unrecognized(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
		b.want.Kind, err, summary(b.original)))
}

// summary shows the start of a body: as text if it looks like JSON, otherwise in hexadecimal digits.
func summary(data []byte) string {
	const limit = 30
	if len(data) == 0 {
		return "<empty>"
	}
	show := func(b []byte) string { return hex.EncodeToString(b) }
	if data[0] == '{' {
		show = func(b []byte) string { return string(b) }
	}
	if len(data) > limit {
		return show(data[:limit]) + " ..."
	}
	return show(data)
}
