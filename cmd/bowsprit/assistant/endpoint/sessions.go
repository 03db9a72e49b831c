package endpoint

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/internal/part"
)

const (
	// maxSessions bounds the sessions of a server, maxOwned the sessions of a user.
	maxSessions = 64
	maxOwned    = 8
	// maxCalls bounds the requests of a session at a time.
	maxCalls = 8
	// idleLife is the time after which an idle session ends.
	idleLife = 30 * time.Minute
	// retryAfter is the number of seconds after which a refused client may try again.
	retryAfter = 5
)

// sessions are the sessions of a server.
type sessions struct {
	options   assistant.Options
	url       string
	log       *slog.Logger
	now       func() time.Time
	afterFunc func(time.Duration, func()) (stop func() bool)

	mu struct {
		sync.Mutex
		all    map[string]*session
		order  []*session // by the beginning of their last requests
		closed bool
	}
}

func (t *sessions) open(h *part.Host, options assistant.Options) {
	t.options, t.url, t.log, t.now, t.afterFunc = options, h.URL, h.Log, h.Now, h.AfterFunc
	t.mu.all = map[string]*session{}
}

// find returns the session with a name, or a new one for the name "". Another user gets 403. If the user has other
// groups than before, the session ends.
func (t *sessions) find(owner identity, name string) (*session, error) {
	if name == "" {
		return t.start(owner)
	}
	t.mu.Lock()
	s := t.mu.all[name]
	switch {
	case s == nil:
		t.mu.Unlock()
		return nil, errEnded
	case s.owner.names != owner.names:
		t.mu.Unlock()
		return nil, failure(http.StatusForbidden, "the session belongs to another user")
	case s.owner != owner:
		t.mu.Unlock()
		t.end(s)
		return nil, failure(http.StatusNotFound, "the session has ended, because the groups of the user have changed")
	case s.idleSince(t.now().Add(-idleLife)): // its timer is late
		t.mu.Unlock()
		t.end(s)
		return nil, errEnded
	}
	i := slices.Index(t.mu.order, s)
	t.mu.order = append(slices.Delete(t.mu.order, i, i+1), s)
	t.mu.Unlock()
	return s, nil
}

// errEnded is the error for a session that does not exist. A client then starts another one.
var errEnded = failure(http.StatusNotFound, "there is no such session: it has ended, or never was")

// start returns a new session. If the user has too many, the longest idle session of the user ends.
func (t *sessions) start(owner identity) (*session, error) {
	s := &session{name: rand.Text(), owner: owner, log: t.log}
	s.mu.calls = map[string]*call{}
	options := t.options
	options.Session = s.name
	tools, err := assistant.New(&connect.Server{
		Config: &rest.Config{Host: t.url, Transport: s}, Namespace: "default",
	}, options)
	if err != nil {
		return nil, err
	}
	s.server = tools.Server()
	s.server.AddReceivingMiddleware(s.within)
	replaced, err := t.add(s)
	if replaced != nil {
		t.end(replaced)
	}
	return s, err
}

// add adds a session, if there is room. It returns the session that loses its place.
func (t *sessions) add(s *session) (replaced *session, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var owned []*session
	for _, other := range t.mu.order {
		if other.owner.names == s.owner.names {
			owned = append(owned, other)
		}
	}
	if len(owned) >= maxOwned {
		i := slices.IndexFunc(owned, (*session).idle)
		if i < 0 {
			return nil, apierrors.NewTooManyRequests("all sessions of the user have requests", retryAfter)
		}
		replaced = owned[i]
		t.removeLocked(replaced)
	}
	if t.mu.closed || len(t.mu.all) >= maxSessions {
		return replaced, apierrors.NewTooManyRequests("the server has too many sessions", retryAfter)
	}
	t.mu.all[s.name] = s
	t.mu.order = append(t.mu.order, s)
	return replaced, nil
}

func (t *sessions) removeLocked(s *session) {
	delete(t.mu.all, s.name)
	t.mu.order = slices.DeleteFunc(t.mu.order, func(one *session) bool { return one == s })
}

// finish ends a call. A session without another call ends after idleLife, or now if it was never initialized.
func (t *sessions) finish(s *session, c *call) {
	if !s.finish(c, t.now(), t.idleTimer(s)) {
		return
	}
	for range s.server.Sessions() {
		return
	}
	t.end(s)
}

// idleTimer returns a function that starts the timer of an idle session.
func (t *sessions) idleTimer(s *session) func() (stop func() bool) {
	return func() (stop func() bool) {
		return t.afterFunc(idleLife, func() {
			if s.idleSince(t.now().Add(-idleLife)) {
				t.end(s)
			}
		})
	}
}

// end removes a session and ends its requests.
func (t *sessions) end(s *session) {
	t.mu.Lock()
	t.removeLocked(s)
	t.mu.Unlock()
	s.end()
}

// close ends all sessions, and refuses further ones.
func (t *sessions) close() {
	t.mu.Lock()
	all := slices.Clone(t.mu.order)
	t.mu.closed = true
	t.mu.Unlock()
	for _, s := range all {
		t.end(s)
	}
}
