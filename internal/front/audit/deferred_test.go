package audit

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// readBy returns the Record of a get over HTTP/2, and its backend's lines.
func readBy(b *logBackend, id string) *Record {
	r := &Record{auditor: newAuditor(nil, b, silent), extras: extras{flushed: true}}
	r.event.Verb, r.event.AuditID = "get", types.UID(id)
	return r
}

// TestDeferredIsKubes checks that two events encoded together equal the lines of Kubernetes' library, with each field
// alone, with all and with none.
func TestDeferredIsKubes(t *testing.T) {
	t.Parallel()
	for _, e := range eventsByField() {
		e.Verb, e.Stage = "get", auditapi.StageResponseComplete
		received := &auditapi.Event{
			Level: e.Level, AuditID: e.AuditID, Stage: auditapi.StageRequestReceived,
			RequestURI: e.RequestURI, Verb: e.Verb, User: e.User, SourceIPs: e.SourceIPs,
			UserAgent: e.UserAgent, ObjectRef: e.ObjectRef,
			RequestReceivedTimestamp: e.RequestReceivedTimestamp, StageTimestamp: e.RequestReceivedTimestamp,
		}
		var ours, kubes bytes.Buffer
		b := &logBackend{out: &ours, lenient: true}
		if !b.record(e, extras{deferred: true}) {
			t.Fatalf("event %+v was not written", e)
		}
		b.Shutdown()
		pluginlog.NewBackend(&kubes, FormatJSON, auditv1.SchemeGroupVersion).
			ProcessEvents(received.DeepCopy(), e.DeepCopy())
		if ours.String() != kubes.String() {
			t.Errorf("\n got %swant %s", ours.String(), kubes.String())
		}
	}
}

// stages returns the stages of lines, with their impersonated users and annotations.
func stages(writes []string) string {
	var out []string
	for line := range strings.Lines(strings.Join(writes, "")) {
		_, stage, _ := strings.Cut(line, `"stage":"`)
		stage, _, _ = strings.Cut(stage, `"`)
		for _, more := range []string{"impersonatedUser", "annotations", "responseStatus"} {
			if strings.Contains(line, more) {
				stage += "+" + more
			}
		}
		out = append(out, stage)
	}
	return strings.Join(out, " ")
}

// TestDeferred checks that the event RequestReceived of a read is written with its result, without facts found in
// between, or after the limit.
func TestDeferred(t *testing.T) {
	t.Parallel()
	answer := func(r *Record) {
		r.Impersonated(&user.DefaultInfo{Name: "bob"}, "")
		r.Annotate("found", "out")
		r.ResponseStarted(200)
		r.ResponseComplete(time.Now())
	}
	const complete = "ResponseComplete+impersonatedUser+annotations+responseStatus"

	out := &sink{}
	r := readBy(&logBackend{out: out, lenient: true}, "short")
	r.RequestReceived()
	r.auditor.Flush()
	if writes := out.all(); len(writes) != 0 {
		t.Errorf("written before the end: %q", writes)
	}
	answer(r)
	r.auditor.Flush()
	if got := stages(out.all()); got != "RequestReceived "+complete || len(out.all()) != 1 {
		t.Errorf("a short read: %s, in %d writes", got, len(out.all()))
	}

	out = &sink{entered: make(chan struct{}, 9), goOn: make(chan struct{}, 9)}
	for range cap(out.goOn) {
		out.goOn <- struct{}{}
	}
	r = readBy(&logBackend{out: out, lenient: true}, "long")
	r.RequestReceived()
	r.Impersonated(&user.DefaultInfo{Name: "bob"}, "")
	<-out.entered // the limit has passed
	answer(r)
	r.auditor.Flush()
	if got := stages(out.all()); got != "RequestReceived "+complete {
		t.Errorf("a long read: %s", got)
	}

	out = &sink{}
	r = readBy(&logBackend{out: out, lenient: true}, "broken")
	r.RequestReceived()
	r.Panicked("oops")
	r.auditor.Flush()
	if got := stages(out.all()); got != "RequestReceived Panic+responseStatus" {
		t.Errorf("a read that panics: %s", got)
	}

	out = &sink{}
	r = readBy(&logBackend{out: out, lenient: true}, "watch")
	r.longRunning = true
	r.RequestReceived()
	r.ResponseStarted(200)
	r.ResponseComplete(time.Now())
	r.auditor.backend.Shutdown()
	want := "RequestReceived ResponseStarted+responseStatus ResponseComplete+responseStatus"
	if got := stages(out.all()); got != want {
		t.Errorf("a watch: %s", got)
	}

	out = &sink{}
	r = readBy(&logBackend{out: out, lenient: true}, "under way")
	r.RequestReceived()
	r.auditor.backend.Shutdown()
	if got := stages(out.all()); got != "RequestReceived" {
		t.Errorf("a read that goes on at the end of the server: %s", got)
	}
}

// TestNotDeferred checks the cases in which RequestReceived is written at once: the request may change something, is
// not flushed, omits a stage, or has an annotation that belongs to this event only, or the log refuses.
func TestNotDeferred(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Record, *logBackend){
		"a write":         func(r *Record, _ *logBackend) { r.event.Verb = "create" },
		"over HTTP/1":     func(r *Record, _ *logBackend) { r.flushed = false },
		"omitted":         func(r *Record, _ *logBackend) { r.omit = []auditapi.Stage{auditapi.StagePanic} },
		"annotated":       func(r *Record, _ *logBackend) { r.annotations.add("a", "b") },
		"blocking-strict": func(_ *Record, b *logBackend) { b.lenient = false },
		"legacy":          func(_ *Record, b *logBackend) { b.legacy = true },
		"as others":       func(*Record, *logBackend) {},
	} {
		b := &logBackend{out: &sink{}, lenient: true}
		r := readBy(b, name)
		change(r, b)
		r.RequestReceived()
		if deferred := b.deferred.first != nil; deferred != (name == "as others") || deferred != r.deferred {
			t.Errorf("%s: deferred is %t, for the record %t", name, deferred, r.deferred)
		}
		b.Shutdown()
	}
}

// Many reads and a limit that passes again and again leave two lines of each, in their order.
func TestDeferredOnce(t *testing.T) {
	t.Parallel()
	out := &sink{}
	b := &logBackend{out: out, lenient: true}
	var reads sync.WaitGroup
	const workers, each = 8, 200
	for w := range workers {
		reads.Go(func() {
			for i := range each {
				r := readBy(b, fmt.Sprintf("%d-%d.", w, i))
				r.RequestReceived()
				if i%3 == 0 {
					b.writeLate()
				}
				r.ResponseComplete(time.Now())
				r.auditor.Flush()
			}
		})
	}
	reads.Wait()
	seen := map[string]string{}
	for line := range strings.Lines(strings.Join(out.all(), "")) {
		_, id, _ := strings.Cut(line, `"auditID":"`)
		id, _, _ = strings.Cut(id, `"`)
		seen[id] += stages([]string{line}) + " "
	}
	for id, got := range seen {
		if got != "RequestReceived ResponseComplete+responseStatus " {
			t.Errorf("%s: %s", id, got)
		}
	}
	if len(seen) != workers*each {
		t.Errorf("%d reads are in the log, not %d", len(seen), workers*each)
	}
	if b.deferred.first != nil || b.held.Load() != 0 {
		t.Errorf("there is something left: %v, %d", b.deferred.first, b.held.Load())
	}
}
