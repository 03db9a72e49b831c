package chain

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
)

// authenticate identifies the user: 401 for invalid credentials.
func (c *Chain) authenticate(x *exchange, next func(*exchange)) {
	if x.caller != nil { // of Caller.Serve
		x.user = x.caller
		next(x)
		return
	}
	u, err := c.config.Authenticator.Authenticate(x.r)
	c.spent(x, request.Authentication, x.started)
	if err != nil || stranger(u) {
		c.endConnection(x)
	}
	if err != nil {
		c.config.Log.Warn("cannot authenticate a request", "error", err, "from", x.r.RemoteAddr, "auditID",
			x.scope.AuditID)
		c.refuse(x, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	x.user, x.caller = u, u
	next(x)
}

// endConnection ends the HTTP/2 connection of an unauthenticated client after this request, as Kubernetes does: the
// protocol lets one connection cause much work (CVE-2023-44487).
func (c *Chain) endConnection(x *exchange) {
	if x.r.ProtoMajor == 2 {
		x.w.Header().Set("Connection", "close")
	}
}

func stranger(u user.Info) bool {
	return u != nil && (u.GetName() == user.Anonymous || slices.Contains(u.GetGroups(), user.AllUnauthenticated))
}

// authorize checks the user's permission.
func (c *Chain) authorize(x *exchange, next func(*exchange)) {
	var began time.Time
	if x.shared != nil {
		began = x.shared.ticket.Began() // a moment ago
	} else {
		began = c.config.Now()
	}
	decision, err := c.config.Authorizer.Authorize(x.r.Context(), x.user, x.info)
	c.metrics.authorization(decision, err, c.spent(x, request.Authorization, began))
	if c.showVisible(x, decision.Allowed()) {
		decision, err = authz.Decision{
			Verdict: authz.Allow, Reason: "the page contains only data that the caller may read",
		}, nil
	}
	if x.record != nil {
		recordDecision(x.record, decision, err)
	}
	if err := authz.Refusal(x.user, x.info, decision, err); err != nil {
		c.forbid(x, err)
		return
	}
	next(x)
}

// recordDecision records the authorizer's decision.
func recordDecision(r *audit.Record, d authz.Decision, err error) {
	switch {
	case d.Allowed():
		r.Decided("allow", d.Reason)
	case err != nil:
		r.Decided("", "internal error")
	default:
		r.Decided("forbid", d.Reason)
	}
}

// showVisible limits a list or watch with visible=true to the objects that its caller may see. It returns false if the
// parameter is missing, or if another authorizer than RBAC allows the whole request.
func (c *Chain) showVisible(x *exchange, allowed bool) bool {
	if c.config.Viewer == nil || !x.info.RequestsVisible() ||
		!slices.Contains(x.user.GetGroups(), user.AllAuthenticated) {
		return false
	}
	visible := c.config.Viewer.Visible(x.user, x.info)
	if allowed && !visible.IncludesAll(x.info.Namespace) {
		return false
	}
	x.scope.Visible = visible
	return true
}
