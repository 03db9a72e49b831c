package aggregation

import (
	"errors"
	"sync"
	"time"
)

// silenceError is the error of a request that a server has not answered, or with a 5xx.
type silenceError struct{ error }

// Unwrap returns the cause.
func (e *silenceError) Unwrap() error { return e.error }

func isSilence(err error) bool { return errors.As(err, new(*silenceError)) }

// silencePause is the time after an unanswered request in which the server gets no other one: many namespaces must not
// wait for one server one after the other.
const silencePause = 2 * time.Second

// silences are the servers that have not answered the last request about a namespace.
type silences struct {
	mu sync.Mutex
	// of holds the last error of a server and the end of its pause. A later failure replaces it, and an answer
	// removes it.
	of map[*remote]silence
}

type silence struct {
	err   error
	until time.Time
}

// enter returns the last error of a server during its pause. After the pause one request at a time may try again.
func (s *silences) enter(r *remote, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, silent := s.of[r]
	if !silent {
		return nil
	}
	if now.Before(last.until) {
		return last.err
	}
	last.until = now.Add(emptyTimeout)
	s.of[r] = last
	return nil
}

// leave records the result of a request, and reports whether the server has not answered.
func (s *silences) leave(r *remote, now time.Time, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isSilence(err) {
		delete(s.of, r)
		return false
	}
	if s.of == nil {
		s.of = map[*remote]silence{}
	}
	for other, last := range s.of { // APIServices that have changed since
		if now.Sub(last.until) > silenceKept {
			delete(s.of, other)
		}
	}
	s.of[r] = silence{err, now.Add(silencePause)}
	return true
}

// silenceKept is the time after which an unused entry is dropped.
const silenceKept = 10 * time.Minute
