package openapi

import (
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Forms of a document.
const (
	formJSON     = "json"
	formProtobuf = "protobuf"
)

// offer is a supported media type.
type offer struct{ accept, contentType, form string }

// formsV2 and formsV3 list the supported forms. The names with "@" are not valid media types; client-go still requests
// that of v2.
var (
	formsV2 = []offer{
		{"application/json", "application/json", formJSON},
		{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
			"application/com.github.proto-openapi.spec.v2.v1.0+protobuf", formProtobuf},
		{"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
			"application/com.github.proto-openapi.spec.v2.v1.0+protobuf", formProtobuf},
	}
	formsV3 = []offer{
		{"application/json", "application/json", formJSON},
		{"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", formProtobuf},
		{"application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", formProtobuf},
	}
)

// negotiate returns the first of offers that the Accept header allows, by falling q, or "", "".
func negotiate(r *http.Request, offers []offer) (form, contentType string) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		accept = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, o := range offers {
			kind, sub, _ := strings.Cut(o.accept, "/")
			if (clause.Type == kind || clause.Type == "*") && (clause.SubType == sub || clause.SubType == "*") {
				return o.form, o.contentType
			}
		}
	}
	return "", ""
}

func errNotAcceptable(offers []offer) error {
	names := make([]string, len(offers))
	for i, o := range offers {
		names[i] = o.accept
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(names, ", "),
	}}
}

func takesGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(coding) == "gzip" {
			return true
		}
	}
	return false
}
