package chain

import (
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// impersonate switches to the impersonated user: 403 for a user that the caller may not impersonate.
func (c *Chain) impersonate(x *exchange, next func(*exchange)) {
	wanted, err := x.wanted, error(nil) // of Caller.Serve
	if wanted == nil {
		wanted, err = authn.Impersonation(x.r.Header)
	}
	if err == nil && wanted == nil {
		next(x)
		return
	}
	x.wanted = wanted
	var as authz.Impersonated
	if err == nil {
		began := c.config.Now()
		as, err = c.acting.Impersonate(x.r.Context(), x.user, wanted, x.info)
		c.spent(x, request.Impersonation, began)
		c.config.Log.Debug("impersonation", "caller", x.user.GetName(), "wanted", wanted.Name, "error", err, "auditID",
			x.scope.AuditID)
	}
	if err != nil {
		c.forbid(x, err)
		return
	}
	if x.record != nil {
		x.record.Impersonated(as.User, as.Constraint)
	}
	x.user = as.User
	next(x)
}
