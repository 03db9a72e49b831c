package codec

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Media is the form of a response.
type Media struct {
	Type string // JSON, YAML, Protobuf or CBOR
	// As is the kind that the client requests instead of the object: "", "Table", "PartialObjectMetadata" or
	// "PartialObjectMetadataList". Group is then meta.k8s.io and Version v1 or v1beta1.
	As, Group, Version string
	// Pretty requests indented JSON.
	Pretty bool
}

// Binary reports whether the form is not text: Protobuf or CBOR.
func (m Media) Binary() bool { return m.Type == Protobuf || m.Type == CBOR }

// WatchType is the Content-Type of a stream of watch events in this form.
func (m Media) WatchType() string {
	switch m.Type {
	case Protobuf:
		return Protobuf + ";stream=watch"
	case CBOR:
		return cborSequence
	}
	return m.Type
}

// Offer describes the forms that a resource supports.
type Offer struct {
	// Message is true if its objects have a protobuf form: for built-in kinds.
	Message bool
	// NoTable is true if its objects have no table: they can be created but not read, such as reviews.
	NoTable bool
}

// Negotiate selects the form from the Accept header of a request for an object or a list: the clause with the highest
// quality that the server supports. Without the header it is JSON. The error is a *apierrors.StatusError, 406.
func Negotiate(r *http.Request, offer Offer) (Media, error) {
	m, ok := negotiate(r, offer.allows)
	if !ok {
		return Media{}, NotAcceptable(Offered(r.Context())...)
	}
	return m, nil
}

// NegotiateWatch is Negotiate for a stream of watch events, which does not support YAML.
func NegotiateWatch(r *http.Request, offer Offer) (Media, error) {
	m, err := Negotiate(r, offer)
	if err != nil {
		return Media{}, err
	}
	if m.Type == YAML {
		types := supported(";stream=watch", JSON, Protobuf)
		if speaksCBOR(r.Context()) {
			types = append(types, cborSequence)
		}
		return Media{}, NotAcceptable(types...)
	}
	return m, nil
}

// NotAcceptable is the 406 for a request that accepts none of types.
func NotAcceptable(types ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(types, ", "),
	}}
}

// negotiate applies Kubernetes' rules: clauses by quality, and within a clause the server's types in its order. A
// clause with unsupported parameters is skipped. transform reports whether a conversion is supported.
func negotiate(r *http.Request, transform func(Media) bool) (Media, bool) {
	switch r.Header.Get("Accept") {
	case "", JSON, "*/*":
		return Media{Type: JSON, Pretty: wantsPretty(r)}, true
	}
	return Choose(r, Offered(r.Context()), transform)
}

// Choose applies the same rules to any list of media types; allow reports whether a form is supported. Without an
// Accept header nothing is chosen.
func Choose(r *http.Request, offered []string, allow func(Media) bool) (Media, bool) {
	pretty := wantsPretty(r)
	for _, clause := range goautoneg.ParseAccept(r.Header.Get("Accept")) {
		for _, typ := range offered {
			major, minor, _ := strings.Cut(typ, "/")
			switch {
			case clause.Type == major && clause.SubType == minor, clause.Type == major && clause.SubType == "*",
				clause.Type == "*" && clause.SubType == "*":
				m := Media{Type: typ, Pretty: pretty}
				if m.parameters(clause.Params) && allow(m) {
					return m, true
				}
			}
		}
	}
	return Media{}, false
}

// parameters applies the parameters of a media type. It ignores unknown parameters.
func (m *Media) parameters(params map[string]string) bool {
	for name, value := range params {
		switch name {
		case "as":
			m.As = value
		case "g":
			m.Group = value
		case "v":
			m.Version = value
		case "stream":
			if value != "" && (m.Type == YAML || value != "watch") {
				return false
			}
		case "sv":
			if value != "" && value != "v1" {
				return false
			}
		case "pretty":
			m.Pretty = m.Pretty || value == "1"
		}
	}
	return true
}

// allows reports whether the offer includes the form.
func (o Offer) allows(m Media) bool {
	if m.As == "" && m.Group == "" && m.Version == "" {
		return o.Message || m.Type != Protobuf
	}
	if m.Group != metav1.GroupName || m.Version != "v1" && m.Version != "v1beta1" {
		return false
	}
	switch m.As {
	case "Table":
		return !m.Binary() && !o.NoTable
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

// noTransform is for responses with one form only, such as errors.
func noTransform(m Media) bool { return m.As == "" && m.Group == "" && m.Version == "" }

// wantsPretty reports whether a person reads the response: the query requests it, or the client is a browser, curl or
// wget.
func wantsPretty(r *http.Request) bool {
	if r.URL != nil && strings.Contains(r.URL.RawQuery, "pretty") {
		if value := r.URL.Query().Get("pretty"); value != "" {
			pretty, _ := strconv.ParseBool(value)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}
