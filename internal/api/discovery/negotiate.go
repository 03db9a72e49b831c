package discovery

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
)

// media is the form of a document that a client requests.
type media struct {
	contentType string // one of codec.Offered
	aggregated  string // "v2" or "v2beta1" for the aggregated form, "" for the plain one
	pretty      bool
	noPeer      bool // only this server's resources
}

// header returns the Content-Type of a response in this form.
func (m media) header() string {
	if m.aggregated == "" {
		return m.contentType
	}
	return m.contentType + ";g=" + apidiscoveryv2.GroupName + ";v=" + m.aggregated + ";as=APIGroupDiscoveryList"
}

// negotiate returns the first offered form in the Accept header, by descending q. aggregated is true if the path has
// an aggregated form; otherwise clauses that request it are skipped.
//
// Kubernetes has not offered v2beta1 since 1.35. It costs nothing and saves clients of 1.26 to 1.29 a request for each
// version.
func negotiate(r *http.Request, offered []string, aggregated bool) (media, bool) {
	header := r.Header.Get("Accept")
	if header == "" {
		return media{contentType: runtime.ContentTypeJSON, pretty: pretty(r)}, true
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		for _, contentType := range offered {
			kind, sub, _ := strings.Cut(contentType, "/")
			if !(clause.Type == kind && (clause.SubType == sub || clause.SubType == "*") || clause.Type == "*" &&
				clause.SubType == "*") {
				continue
			}
			m := media{contentType: contentType, pretty: pretty(r) || clause.Params["pretty"] == "1"}
			if m.convert(clause.Params, aggregated) {
				return m, true
			}
		}
	}
	return media{}, false
}

// convert applies the parameters of a clause. It returns false if the server does not support them.
func (m *media) convert(params map[string]string, aggregated bool) bool {
	if s := params["stream"]; s != "" && s != "watch" || params["sv"] != "" {
		return false
	}
	group, g := params["g"]
	version, v := params["v"]
	kind, as := params["as"]
	if !g && !v && !as {
		return true
	}
	if !aggregated || group != apidiscoveryv2.GroupName || kind != "APIGroupDiscoveryList" || version != "v2" &&
		version != "v2beta1" {
		return false
	}
	m.aggregated, m.noPeer = version, params["profile"] == "nopeer"
	return true
}

// pretty reports whether the client is a person: ?pretty, or a user agent that counts as one in Kubernetes.
func pretty(r *http.Request) bool {
	if p := r.URL.Query().Get("pretty"); p != "" {
		on, _ := strconv.ParseBool(p)
		return on
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}
