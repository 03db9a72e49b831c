// Package openid serves the documents for verifying service account tokens: the provider's configuration (OpenID
// Connect Discovery 1.0) and its keys.
//
// It is a part beside the core. Source: pkg/routes/openidmetadata.go of Kubernetes 1.36.
package openid

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Part adds the documents. keysURI is the URL of the keys; if empty, they are at this server, at the URL that joined
// derives from the server's own.
func Part(keysURI string, joined func(own string) string) part.Part {
	return part.Part{Name: "keys of tokens", Pages: func(h *part.Host) map[string]front.Handler {
		if keysURI == "" {
			keysURI = joined(h.URL) + serviceaccount.KeysPath
		}
		return map[string]front.Handler{
			serviceaccount.ConfigurationPath + "/": document("application/json",
				func() []byte { return h.Tokens.Configuration(keysURI) }),
			serviceaccount.KeysPath + "/": document("application/jwk-set+json", h.Tokens.KeySet),
		}
	}}
}

// document serves a document to every caller, also under its path with a slash at the end.
func document(contentType string, content func() []byte) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
		switch path := strings.TrimSuffix(info.Path, "/"); {
		case path != serviceaccount.ConfigurationPath && path != serviceaccount.KeysPath:
			codec.WriteError(w, r, generic(http.StatusNotFound, r.Method))
		case r.Method != http.MethodGet:
			codec.WriteError(w, r, generic(http.StatusMethodNotAllowed, r.Method))
		case !accepts(r.Header, contentType):
			codec.WriteError(w, r, notAcceptable(contentType))
		default:
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Cache-Control", "public, max-age=3600")
			_, _ = w.Write(content())
		}
	}
}

func generic(code int, method string) error {
	return apierrors.NewGenericServerResponse(code, method, schema.GroupResource{}, "", "", 0, false)
}

// accepts reports whether a client accepts the type: it names it or a wildcard, or has no Accept header.
func accepts(header http.Header, contentType string) bool {
	wanted := header.Get("Accept")
	if wanted == "" {
		return true
	}
	for clause := range strings.SplitSeq(wanted, ",") {
		name, _, _ := strings.Cut(clause, ";")
		if name = strings.TrimSpace(name); name == "*/*" || name == contentType {
			return true
		}
	}
	return false
}

func notAcceptable(contentType string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Details: &metav1.StatusDetails{},
		Message: "406: Not Acceptable\n\nAvailable representations: " + contentType,
	}}
}
