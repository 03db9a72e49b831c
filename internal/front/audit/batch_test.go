package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
)

// sink records each write. It refuses writes that contain a certain word, and blocks in each if configured to.
type sink struct {
	mu      sync.Mutex
	writes  []string
	refused string
	entered chan struct{} // one message for each write that has begun
	goOn    chan struct{} // one message for each write that may end
}

func (s *sink) Write(p []byte) (int, error) {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.goOn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != "" && bytes.Contains(p, []byte(s.refused)) {
		return 0, errors.New("the disk is full")
	}
	s.writes = append(s.writes, string(p))
	return len(p), nil
}

func (s *sink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.writes...)
}

func eventNamed(id string, stage auditapi.Stage, verb string) *auditapi.Event {
	return &auditapi.Event{AuditID: types.UID(id), Stage: stage, Verb: verb}
}

// TestHolds checks that RequestReceived is written with the result for a read, and at once for a write.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verb, mode string
		want       int // number of writes for both stages
	}{
		{"get", ModeBlocking, 1}, {"list", ModeBlocking, 1}, {"watch", ModeBlocking, 1}, {"create", ModeBlocking, 2},
		{"get", ModeBlockingStrict, 2},
	} {
		out := &sink{}
		b := (&LogOptions{Format: FormatJSON, Mode: tc.mode}).wrap(out)
		b.ProcessEvents(eventNamed("one", auditapi.StageRequestReceived, tc.verb))
		b.ProcessEvents(eventNamed("one", auditapi.StageResponseComplete, tc.verb))
		writes := out.all()
		if len(writes) != tc.want {
			t.Errorf("%s, %s: written as %q, not in %d", tc.verb, tc.mode, writes, tc.want)
		}
		text := strings.Join(writes, "")
		if first, second, _ := strings.Cut(text, "\n"); !strings.Contains(first, "RequestReceived") ||
			!strings.Contains(second, "ResponseComplete") {
			t.Errorf("%s, %s: %s", tc.verb, tc.mode, text)
		}
	}
}

// TestHeldIsWritten checks that a held line is written after the limit, and when the server stops.
func TestHeldIsWritten(t *testing.T) {
	t.Parallel()
	out := &sink{entered: make(chan struct{}), goOn: make(chan struct{}, 1)}
	b := &logBackend{out: out, lenient: true}
	b.ProcessEvents(eventNamed("one", auditapi.StageRequestReceived, "get"))
	<-out.entered // the limit has passed
	out.goOn <- struct{}{}
	stopped := &sink{}
	b = &logBackend{out: stopped, lenient: true}
	b.ProcessEvents(eventNamed("two", auditapi.StageRequestReceived, "get"))
	b.Shutdown()
	if writes := stopped.all(); len(writes) != 1 || !strings.Contains(writes[0], "two") {
		t.Errorf("%q", writes)
	}
}

// TestFlushedIsHeld checks that the events of a read are written when its response is sent, and at once if that moment
// is unknown.
func TestFlushedIsHeld(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verb, mode    string
		flushed       bool
		before, after int // number of writes before and after the flush
	}{
		{"get", ModeBlocking, true, 0, 1}, {"get", ModeBlocking, false, 1, 1}, {"create", ModeBlocking, true, 2, 2},
		{"list", ModeBlockingStrict, true, 2, 2},
	} {
		out := &sink{}
		a := newAuditor(nil, (&LogOptions{Format: FormatJSON, Mode: tc.mode}).wrap(out), silent)
		for _, stage := range []auditapi.Stage{auditapi.StageRequestReceived, auditapi.StageResponseComplete} {
			a.deliver(&Record{event: *eventNamed("one", stage, tc.verb), extras: extras{flushed: tc.flushed}})
		}
		before := len(out.all())
		a.Flush()
		a.Flush()
		after := out.all()
		if before != tc.before || len(after) != tc.after || strings.Count(strings.Join(after, ""), "\n") != 2 {
			t.Errorf("%+v: %d before, then %q", tc, before, after)
		}
	}
}

// TestFlushWaits checks that a flush waits for lines that another goroutine is writing.
func TestFlushWaits(t *testing.T) {
	t.Parallel()
	out := &sink{entered: make(chan struct{}), goOn: make(chan struct{})}
	a := newAuditor(nil, &logBackend{out: out, lenient: true}, silent)
	a.deliver(&Record{event: *eventNamed("one", auditapi.StageResponseComplete, "get"), extras: extras{flushed: true}})
	var calls sync.WaitGroup
	calls.Go(a.Flush)
	<-out.entered
	const others = 20
	var begun sync.WaitGroup
	begun.Add(others)
	for range others {
		calls.Go(func() {
			begun.Done()
			a.Flush()
			if writes := out.all(); len(writes) != 1 {
				t.Errorf("%q", writes)
			}
		})
	}
	begun.Wait()
	out.goOn <- struct{}{}
	calls.Wait()
}

// TestTogether checks that lines that arrive during a write are written together, and that each call returns when its
// line is written.
func TestTogether(t *testing.T) {
	t.Parallel()
	out := &sink{entered: make(chan struct{}), goOn: make(chan struct{})}
	b := &logBackend{out: out}
	var calls sync.WaitGroup
	calls.Go(func() { b.ProcessEvents(eventNamed("first", auditapi.StageResponseComplete, "get")) })
	<-out.entered
	const count = 20
	for i := range count {
		calls.Go(func() {
			id := fmt.Sprintf("later-%d.", i)
			b.ProcessEvents(eventNamed(id, auditapi.StageResponseComplete, "get"))
			if !strings.Contains(strings.Join(out.all(), ""), id) {
				t.Errorf("%s is not written", id)
			}
		})
	}
	for came := 0; came < count; { // all are queued
		b.mu.Lock()
		if b.pending != nil {
			came = len(b.pending.ends)
		}
		b.mu.Unlock()
	}
	out.goOn <- struct{}{}
	<-out.entered
	out.goOn <- struct{}{}
	calls.Wait()
	if writes := out.all(); len(writes) != 2 || strings.Count(writes[1], "\n") != count {
		t.Errorf("%q", writes)
	}
}

// TestPartOfBatchFails checks that in a failing batch only lines that fail alone are failures.
func TestPartOfBatchFails(t *testing.T) {
	t.Parallel()
	out := &sink{refused: "bad"}
	b := &logBackend{out: out}
	good, i := b.add([]byte("good\n"), 0, false)
	bad, j := b.add([]byte("bad\n"), 0, false)
	held, _ := b.add([]byte("bad, held\n"), 0, true)
	if good != bad || bad != held {
		t.Fatal("these are no batch")
	}
	if err := b.flush(good, i); err != nil {
		t.Error(err)
	}
	if err := b.flush(bad, j); err == nil {
		t.Error("the failure is not returned")
	}
	if writes := out.all(); len(writes) != 1 || writes[0] != "good\n" {
		t.Errorf("%q", writes)
	}
	if ok := b.ProcessEvents(eventNamed("bad", auditapi.StageResponseComplete, "get")); ok {
		t.Error("an event that is not written is reported as written")
	}
}
