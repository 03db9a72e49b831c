package front

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// authenticate finds out who asks, and as whom: 401 for a wrong proof, 403 for a user that the caller may not
// impersonate.
func (s *Server) authenticate(x *exchange, next func(*exchange)) {
	who, err := s.config.Authenticator.Authenticate(x.r)
	if err != nil || stranger(who) {
		s.endConnection(x)
	}
	if err != nil {
		s.config.Log.Warn("cannot authenticate a request", "error", err, "from", x.r.RemoteAddr, "auditID",
			x.scope.AuditID)
		s.fail(x, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	wanted, err := authn.Impersonation(x.r.Header)
	if err == nil && wanted != nil {
		caller := who.GetName()
		who, err = authz.Impersonate(x.r.Context(), s.config.Authorizer, who, wanted, x.info)
		s.config.Log.Debug("impersonation", "caller", caller, "wanted", wanted.Name, "error", err, "auditID",
			x.scope.AuditID)
	}
	if err != nil {
		s.fail(x, err)
		return
	}
	x.who = who
	next(x)
}

// endConnection ends an HTTP/2 connection of an unknown client after this request, as Kubernetes does: the protocol
// lets one connection cause a lot of work (CVE-2023-44487).
func (s *Server) endConnection(x *exchange) {
	if x.r.ProtoMajor == 2 {
		x.w.Header().Set("Connection", "close")
	}
}

func stranger(who user.Info) bool {
	return who != nil && (who.GetName() == user.Anonymous || slices.Contains(who.GetGroups(), user.AllUnauthenticated))
}

// authorize asks whether they may.
func (s *Server) authorize(x *exchange, next func(*exchange)) {
	if err := authz.Require(x.r.Context(), s.config.Authorizer, x.who, x.info); err != nil {
		s.fail(x, err)
		return
	}
	next(x)
}
