package chain

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Caller is the authenticated client of a request, for a handler that makes further requests for it.
type Caller struct {
	// User is the authenticated user, who may impersonate another.
	User   user.Info
	wanted *user.DefaultInfo
	chain  *Chain
}

// CallerOf returns the caller of the request that a handler answers with w, nil if no Chain made w.
func CallerOf(w http.ResponseWriter) *Caller {
	x, ok := w.(*exchange)
	if !ok {
		return nil
	}
	return &Caller{x.caller, x.wanted, x.chain}
}

// Serve serves a further request of the caller, with the same impersonation. Only authentication is not repeated: the
// request is recorded, waits for seats, and is authorized, as if the caller had sent it to the server.
func (c *Caller) Serve(w http.ResponseWriter, r *http.Request) {
	x := c.chain.exchanges.Get()
	x.w, x.r, x.started, x.chain = w, r, c.chain.config.Now(), c.chain
	x.caller, x.wanted = c.User, c.wanted
	x.serve()
	x.recycle() // not after a panic
}
