package aggregation

import (
	"errors"
	"testing"
	"time"
)

// TestSilences checks that a silent server gets one request at a time, and that an answer ends the silence.
func TestSilences(t *testing.T) {
	t.Parallel()
	var s silences
	r, now := &remote{}, time.Now()
	silent := &silenceError{errors.New("no answer")}
	if err := s.enter(r, now); err != nil {
		t.Fatal(err)
	}
	if s.leave(r, now, errors.New("403 Forbidden")) || s.enter(r, now) != nil {
		t.Error("a refusal is no silence")
	}
	if !s.leave(r, now, silent) || !errors.Is(s.enter(r, now), silent) {
		t.Error("the server gets a request in its pause")
	}
	now = now.Add(silencePause)
	if s.enter(r, now) != nil || s.enter(r, now) == nil {
		t.Error("after the pause, one request may try again, and no second one")
	}
	now = now.Add(emptyTimeout) // the request was lost
	if s.enter(r, now) != nil {
		t.Error("no other request follows a lost one")
	}
	s.leave(r, now, nil)
	for range 2 {
		if s.enter(r, now) != nil || len(s.of) != 0 {
			t.Error("an answer does not end the silence")
		}
	}
	s.leave(r, now, silent)
	s.leave(&remote{}, now.Add(2*silenceKept), silent)
	if len(s.of) != 1 {
		t.Errorf("%d entries", len(s.of))
	}
}
