package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// metaVersion is the version for decoding query parameters.
var metaVersion = metav1.SchemeGroupVersion

// parameters decodes a request's query into the options of a verb. The library's codec gives Kubernetes' errors;
// requests without a query, the majority, skip it.
func parameters(query url.Values, into runtime.Object) error {
	if len(query) == 0 {
		return nil
	}
	if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metaVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return invalid.New(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func createOptions(r *http.Request) (*metav1.CreateOptions, error) {
	o := &metav1.CreateOptions{}
	if err := parameters(r.URL.Query(), o); err != nil {
		return nil, err
	}
	return o, invalidOptions("CreateOptions", metav1validation.ValidateCreateOptions(o))
}

func updateOptions(r *http.Request) (*metav1.UpdateOptions, error) {
	o := &metav1.UpdateOptions{}
	if err := parameters(r.URL.Query(), o); err != nil {
		return nil, err
	}
	return o, invalidOptions("UpdateOptions", metav1validation.ValidateUpdateOptions(o))
}

func patchOptions(r *http.Request, patchType types.PatchType) (*metav1.PatchOptions, error) {
	o := &metav1.PatchOptions{}
	if err := parameters(r.URL.Query(), o); err != nil {
		return nil, err
	}
	return o, invalidOptions("PatchOptions", metav1validation.ValidatePatchOptions(o, patchType))
}

// deleteOptions returns the options from the body or, if it is empty, from the query.
func (s *Server) deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	sent := decode.Body{Data: body, Type: r.Header.Get("Content-Type")}
	if err := chargeBody(r, sent, func() any { return new(metav1.DeleteOptions) }); err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	if len(body) > 0 {
		if err := decodeDeleteOptions(r.Context(), body, sent.Type, o); err != nil {
			return nil, err
		}
		recordDeleteOptions(request.RecordOf(r.Context()), o)
	} else if err := parameters(r.URL.Query(), o); err != nil {
		return nil, err
	}
	if !s.verbs.UnsafeDeletion() {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil // like a server without this option
	}
	return o, invalidOptions("DeleteOptions", metav1validation.ValidateDeleteOptions(o))
}

// decodeDeleteOptions accepts DeleteOptions of any API group and, like Kubernetes, a body without kind and apiVersion.
func decodeDeleteOptions(ctx context.Context, body []byte, contentType string, into *metav1.DeleteOptions) error {
	mediaType, err := codec.BodyType(ctx, contentType)
	switch {
	case err != nil:
		return err
	case mediaType == codec.Protobuf:
		envelope, err := codec.OpenEnvelope(body)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		into.APIVersion, into.Kind = envelope.APIVersion, envelope.Kind
		if err := checkDeleteOptions(into); err != nil {
			return err
		}
		if _, err := codec.FromProtobuf(body, into); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	case mediaType == codec.CBOR:
		if err := codec.UnmarshalCBOR(body, into); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("unable to determine group/version/kind: %v", err))
		}
		return checkDeleteOptions(into)
	case mediaType == codec.YAML:
		if body, err = codec.FromYAML(body); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if _, err := serializerjson.DefaultMetaFactory.Interpret(body); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return checkDeleteOptions(into)
}

func checkDeleteOptions(into *metav1.DeleteOptions) error {
	if into.Kind != "" && into.Kind != "DeleteOptions" {
		return apierrors.NewBadRequest(decode.NotRegistered(into.Kind, cmp.Or(into.APIVersion, "meta.k8s.io/v1")))
	}
	return nil
}

// getOptions returns the options of a GET of one object. It refuses the parameter export, removed in Kubernetes 1.21,
// because a client that sends it expects a different object.
func getOptions(r *http.Request) (*metav1.GetOptions, error) {
	o := &metav1.GetOptions{}
	if r.URL.RawQuery == "" {
		return o, nil
	}
	query := r.URL.Query()
	if values := query["export"]; len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false") {
		return nil, apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return o, parameters(query, o)
}

func listOptions(query url.Values) (*metainternal.ListOptions, error) {
	o := &metainternal.ListOptions{}
	if err := parameters(query, o); err != nil {
		return nil, err
	}
	metainternal.SetListOptionsDefaults(o, true)
	if o.ResourceVersion == "0" {
		// As in Kubernetes' cache, a read from memory ignores the limit. Informers depend on it.
		o.Limit = 0
	}
	return o, invalidOptions("ListOptions", metainternalvalidation.ValidateListOptions(o, true))
}

// skipsUnreadable reports whether a list omits unreadable objects, because ignoreStoreReadError is true. Kubernetes
// lacks this parameter: a server that ignores it fails as usual.
func skipsUnreadable(query url.Values) bool {
	skip, err := strconv.ParseBool(query.Get("ignoreStoreReadError"))
	return err == nil && skip
}
