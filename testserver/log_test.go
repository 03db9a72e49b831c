package testserver

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit"
)

// TestTail checks that a log keeps its last lines, whole, within its bound.
func TestTail(t *testing.T) {
	t.Parallel()
	var l tail
	fmt.Fprintln(&l, "first")
	if got := l.String(); got != "first\n" {
		t.Errorf("short: %q", got)
	}
	line := strings.Repeat("x", 1000) + "\n"
	for range 3 * maxLog / len(line) {
		io.WriteString(&l, line)
	}
	fmt.Fprintln(&l, "last")
	got := l.String()
	rest, cut := strings.CutPrefix(got, "earlier lines are not kept\n")
	if !cut || !strings.HasPrefix(rest, line) || !strings.HasSuffix(rest, line+"last\n") || len(rest) < maxLog/2 ||
		len(rest) > 2*maxLog {
		t.Errorf("long: %d bytes, cut %v", len(rest), cut)
	}
}

// recorder is a test that records its log and its failure, and runs its cleanups on demand.
type recorder struct {
	testing.TB
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Failed() bool                 { return r.failed }
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)              { fmt.Fprintln(&r.log, args...) }
func (r *recorder) end()                         { r.cleanups[0]() }
func (r *recorder) Errorf(f string, args ...any) { r.failed = true; fmt.Fprintf(&r.log, f, args...) }

// TestLogOfFailure checks that the log of a test that fails, and of no other, has the server's log.
func TestLogOfFailure(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		r := &recorder{TB: t, failed: failed}
		s := Start(r)
		if !strings.Contains(s.Log(), "msg=ready") {
			t.Errorf("the log of a server lacks its start: %s", s.Log())
		}
		r.end()
		got := r.log.String()
		if strings.Contains(got, "msg=ready") != failed || strings.Contains(got, "msg=stopped") != failed {
			t.Errorf("failed %v: the test's log is %q", failed, got)
		}
	}
}

// TestOwnLog checks that a configuration with a log keeps it.
func TestOwnLog(t *testing.T) {
	t.Parallel()
	var own bytes.Buffer
	r := &recorder{TB: t, failed: true}
	s := Start(r, func(c *bowsprit.Config) { c.Log = slog.New(slog.NewTextHandler(&own, nil)) })
	r.end()
	if s.Log() != "" || strings.Contains(r.log.String(), "msg=ready") || !strings.Contains(own.String(), "msg=ready") {
		t.Errorf("own log %q, kept %q, the test's %q", own.String(), s.Log(), r.log.String())
	}
}
