package authn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bowsprit/bowsprit/internal/request"
)

const (
	// protocolHeader lists the protocols of a WebSocket. Programs in browsers, which can set no other header, put their
	// token among them.
	protocolHeader = "Sec-Websocket-Protocol"
	// tokenProtocol is the prefix of a protocol with a token in base64url without padding.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// protocolToken returns the token among the protocols of a WebSocket request, "" if there is none, and the other
// protocols.
func protocolToken(r *http.Request) (token string, others []string, err error) {
	if !request.IsWebSocket(r) {
		return "", nil, nil
	}
	seen := false
	for name := range strings.SplitSeq(strings.Join(r.Header[protocolHeader], ","), ",") {
		name = strings.TrimSpace(name)
		encoded, is := strings.CutPrefix(name, tokenProtocol)
		switch {
		case !is: // an empty name too, as in Kubernetes
			others = append(others, name)
		case seen:
			return "", nil, errors.New("multiple base64.bearer.authorization tokens specified")
		default:
			seen = true
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil {
				return "", nil, errors.New("invalid base64.bearer.authorization token encoding")
			}
			if !utf8.Valid(decoded) {
				return "", nil, errors.New("invalid base64.bearer.authorization token")
			}
			token = string(decoded)
		}
	}
	if token != "" && len(others) == 0 { // one must be left to be agreed upon
		return "", nil, errors.New("missing additional subprotocol")
	}
	return token, others, nil
}
