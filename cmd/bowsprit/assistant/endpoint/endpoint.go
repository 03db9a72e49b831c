// Package endpoint serves the tools of package assistant at /mcp of a server, in MCP's Streamable HTTP.
//
// Part adds it to a server. A request to /mcp passes the steps of every request (front/chain) before it arrives here,
// and check refuses the pages of other sites. A session has the tools of one user. The requests of its tools pass the
// same steps again, as requests of the caller (call), so that the tools reach nothing that the caller does not.
//
// sessions bounds the sessions and ends idle ones. All types are safe for concurrent use. sessions.mu is locked before
// session.mu, and neither is held over a request.
package endpoint

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/chain"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Path is the path of the endpoint.
const Path = "/mcp"

// sessionHeader has the name of a session.
const sessionHeader = "Mcp-Session-Id"

// Part returns the part of a server that serves the tools with these options.
func Part(options assistant.Options) part.Part {
	e := &endpoint{}
	return part.Part{
		Name: "tools for assistants",
		Pages: func(h *part.Host) map[string]front.Handler {
			e.open(h, options)
			return map[string]front.Handler{Path: e.serve}
		},
		Start: func(_ context.Context, h *part.Host) error {
			h.OnStop(func() error {
				e.sessions.close()
				return nil
			})
			return nil
		},
	}
}

// endpoint answers the requests to Path.
type endpoint struct {
	tls      *tls.Config // of the server's connections
	messages *mcp.StreamableHTTPHandler
	sessions sessions
}

func (e *endpoint) open(h *part.Host, options assistant.Options) {
	e.tls = h.Certificates.TLSConfig()
	e.messages = mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{
		JSONResponse:               true, // a stream of events would only have the one answer
		MaxRequestBodyBytes:        assistant.MaxRequest,
		DisableLocalhostProtection: true, // check has a stricter rule
		Logger:                     slog.New(slog.DiscardHandler),
	})
	e.sessions.open(h, options)
}

// sessionKey is the key of a context with a session.
type sessionKey struct{}

// serverOf returns the MCP server of the session of a request.
func serverOf(r *http.Request) *mcp.Server {
	s, _ := r.Context().Value(sessionKey{}).(*session)
	return s.server
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
	caller := chain.CallerOf(w)
	if err := e.check(r, info, u); err != nil {
		codec.WriteError(w, r, err)
		return
	}
	if r.Method != http.MethodPost && r.Method != http.MethodDelete {
		w.Header().Set("Allow", "POST, DELETE") // a GET would open a stream of the server's own messages: it has none
		codec.WriteError(w, r, failure(http.StatusMethodNotAllowed, "the method %s is not served at %s", r.Method, Path))
		return
	}
	owner, name := identityOf(caller.User, u), r.Header.Get(sessionHeader)
	if r.Method == http.MethodDelete {
		e.delete(w, r, owner, name)
		return
	}
	s, err := e.sessions.find(owner, name)
	if err != nil {
		codec.WriteError(w, r, err)
		return
	}
	c, err := s.begin(caller, r)
	if err != nil {
		codec.WriteError(w, r, err)
		return
	}
	defer e.sessions.finish(s, c)
	defer request.Wait(r.Context())() // the requests of the tools have seats of their own
	e.messages.ServeHTTP(w, c.message(s, r))
}

// delete ends a session.
func (e *endpoint) delete(w http.ResponseWriter, r *http.Request, owner identity, name string) {
	if name == "" {
		codec.WriteError(w, r, failure(http.StatusBadRequest, "DELETE needs the header %s", sessionHeader))
		return
	}
	s, err := e.sessions.find(owner, name)
	if err != nil {
		codec.WriteError(w, r, err)
		return
	}
	e.sessions.end(s)
	w.WriteHeader(http.StatusNoContent)
}
