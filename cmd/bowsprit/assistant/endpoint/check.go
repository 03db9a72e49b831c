package endpoint

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// check refuses requests that a page of another site can cause, and requests without credentials. A page cannot change
// the headers Host, Origin and Sec-Fetch-Site, and other clients do not send the last two. Cookies are ignored.
func (e *endpoint) check(r *http.Request, info *request.Info, u user.Info) error {
	if slices.Contains(u.GetGroups(), user.AllUnauthenticated) {
		return apierrors.NewUnauthorized("a session belongs to a user: send credentials")
	}
	refuse := func(format string, args ...any) error {
		return authz.Forbidden(u, info, fmt.Sprintf(format, args...))
	}
	if !e.serves(r.Host) {
		return refuse("the server has no certificate for the host %q of the request: use a name or address of the "+
			"certificate", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if !strings.EqualFold(origin, "https://"+r.Host) {
			return refuse("a page of %q sent the request", origin)
		}
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return refuse("a page of another site sent the request")
		}
	}
	return nil
}

// serves reports whether the server has a certificate for a host, "host" or "host:port". So a page that binds its own
// name to the server's address (DNS rebinding) is refused.
func (e *endpoint) serves(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	now, err := e.tls.GetConfigForClient(nil)
	if name == "" || err != nil {
		return false
	}
	if now.GetCertificate == nil {
		return now.Certificates[0].Leaf.VerifyHostname(name) == nil
	}
	certificate, err := now.GetCertificate(&tls.ClientHelloInfo{ServerName: name})
	return err == nil && certificate.Leaf.VerifyHostname(name) == nil
}

// identity is the user of a session.
type identity struct {
	// names are the names of the caller and of the user, who differ if the caller impersonates.
	names string
	// all has the groups, too, and everything else that permissions may depend on.
	all string
}

// identityOf returns the identity of a request. It leaves out the number of the credentials: a renewed token is another
// proof of the same identity.
func identityOf(caller, as user.Info) identity {
	facts := func(u user.Info) []any {
		extra := maps.Clone(u.GetExtra())
		delete(extra, user.CredentialIDKey)
		return []any{u.GetUID(), slices.Sorted(slices.Values(u.GetGroups())), extra}
	}
	names, err := json.Marshal([]string{caller.GetName(), as.GetName()})
	all, err2 := json.Marshal([]any{facts(caller), facts(as)})
	if err := errors.Join(err, err2); err != nil {
		panic(err) // texts only
	}
	return identity{string(names), string(all)}
}

// failure returns an error for the client.
func failure(code int, format string, args ...any) error {
	reasons := map[int]metav1.StatusReason{
		http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusNotFound:         metav1.StatusReasonNotFound,
		http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed,
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: fmt.Sprintf(format, args...),
	}}
}
