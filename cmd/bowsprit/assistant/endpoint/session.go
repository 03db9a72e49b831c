package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/front/chain"
)

// session is a session of one user, with its tools. It is the transport of their requests.
type session struct {
	name   string
	owner  identity
	server *mcp.Server
	log    *slog.Logger

	mu struct {
		sync.Mutex
		calls map[string]*call // under way, by their names
		last  *call            // that began
		stop  func() bool      // stops the timer of an idle session; nil without one
		since time.Time        // when the last call ended; zero before
		ended bool
	}
}

// idle reports whether no call is under way.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.calls) == 0
}

// idleSince reports whether no call was under way since a time.
func (s *session) idleSince(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.calls) == 0 && !s.mu.since.IsZero() && !s.mu.since.After(at)
}

// begin begins a call of the session's user.
func (s *session) begin(caller *chain.Caller, r *http.Request) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.ended:
		return nil, errEnded
	case len(s.mu.calls) >= maxCalls:
		return nil, apierrors.NewTooManyRequests("the session has too many requests at a time", retryAfter)
	}
	if s.mu.stop != nil {
		s.mu.stop()
		s.mu.stop = nil
	}
	c := newCall(caller, r)
	s.mu.calls[c.name], s.mu.last = c, c
	return c, nil
}

// finish ends a call, and starts the timer if no other is under way. It returns whether the session is then idle.
func (s *session) finish(c *call, now time.Time, timer func() (stop func() bool)) bool {
	c.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.calls, c.name)
	if s.mu.ended || len(s.mu.calls) > 0 {
		return false
	}
	s.mu.since, s.mu.stop = now, timer()
	return true
}

// end ends the calls and the session of the protocol. It may be called again.
func (s *session) end() {
	s.mu.Lock()
	s.mu.ended = true
	if s.mu.stop != nil {
		s.mu.stop()
	}
	for _, c := range s.mu.calls {
		c.end()
	}
	s.mu.Unlock()
	for one := range s.server.Sessions() {
		_ = one.Close() // the connection is in memory
	}
}

// callKey is the key of a context with a call.
type callKey struct{}

// within runs the methods of the protocol within their calls: a method ends with its request. A panic in a tool must
// not end the server.
func (s *session) within(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.log.Error("a tool for assistants has panicked", "cause", cause, "stack", string(debug.Stack()))
				result, err = nil, errors.New("the tool failed: the server's log has the reason")
			}
		}()
		if extra := req.GetExtra(); extra != nil {
			s.mu.Lock()
			c := s.mu.calls[extra.Header.Get(callHeader)]
			s.mu.Unlock()
			if c != nil {
				own, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, c))
				defer cancel()
				c.onEnd(cancel)
				ctx = own
			}
		}
		return next(ctx, method, req)
	}
}

// RoundTrip implements http.RoundTripper: it sends a request of a tool as the caller. Requests of discovery have no
// context of their call; they belong to the last call, which is the same user's.
func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	c, _ := r.Context().Value(callKey{}).(*call)
	s.mu.Lock()
	if c == nil {
		c = s.mu.last
	}
	ended := s.mu.ended
	s.mu.Unlock()
	if ended {
		return nil, errors.New("the session has ended")
	}
	return c.send(r)
}
