package codec

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Media is the form in which a client gets its answer.
type Media struct {
	Type string // JSON or YAML
	// As is the kind that the client wants instead of the object: "", "Table", "PartialObjectMetadata" or
	// "PartialObjectMetadataList". Group is then meta.k8s.io and Version v1 or v1beta1.
	As, Group, Version string
	// Pretty asks for indented JSON.
	Pretty bool
}

// Negotiate chooses by the Accept header of a request for an object or a list: the most wanted clause that the server can
// answer. Without the header it is JSON. The error is a *apierrors.StatusError, 406.
func Negotiate(r *http.Request) (Media, error) {
	m, ok := negotiate(r, allowTransform)
	if !ok {
		return Media{}, NotAcceptable(JSON, YAML, Protobuf)
	}
	return m, nil
}

// NegotiateWatch is Negotiate for a stream of watch events, which exists in JSON only.
func NegotiateWatch(r *http.Request) (Media, error) {
	m, err := Negotiate(r)
	if err != nil {
		return Media{}, err
	}
	if m.Type != JSON {
		return Media{}, NotAcceptable(supported(";stream=watch", JSON, Protobuf)...)
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

// negotiate applies kube's rules: clauses by quality, the server's types in its order within a clause, and a clause whose
// parameters ask for something that is not offered is passed over. transform tells which conversions are offered.
func negotiate(r *http.Request, transform func(Media) bool) (Media, bool) {
	pretty := wantsPretty(r)
	accept := r.Header.Get("Accept")
	switch accept {
	case "", JSON, "*/*":
		return Media{Type: JSON, Pretty: pretty}, true
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, typ := range []string{JSON, YAML} {
			major, minor, _ := strings.Cut(typ, "/")
			switch {
			case clause.Type == major && clause.SubType == minor, clause.Type == major && clause.SubType == "*", clause.Type == "*" && clause.SubType == "*":
				m := Media{Type: typ, Pretty: pretty}
				if m.parameters(clause.Params) && transform(m) {
					return m, true
				}
			}
		}
	}
	return Media{}, false
}

// parameters takes up what the client said behind a media type. Unknown parameters mean nothing.
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
			if value != "" && (m.Type != JSON || value != "watch") {
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

// allowTransform accepts the conversions that every resource offers.
func allowTransform(m Media) bool {
	if m.As == "" && m.Group == "" && m.Version == "" {
		return true
	}
	if m.Group != metav1.GroupName || m.Version != "v1" && m.Version != "v1beta1" {
		return false
	}
	switch m.As {
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

// noTransform is for answers that have one form only, such as errors.
func noTransform(m Media) bool { return m.As == "" && m.Group == "" && m.Version == "" }

// wantsPretty tells whether a person reads the answer: the query says so, or the client is a browser, curl or wget.
func wantsPretty(r *http.Request) bool {
	if r.URL != nil && strings.Contains(r.URL.RawQuery, "pretty") {
		if value := r.URL.Query().Get("pretty"); value != "" {
			pretty, _ := strconv.ParseBool(value)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
