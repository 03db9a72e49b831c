package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// newLogger returns the logger of a process: messages for operators at the default verbosity, each request at 3.
func newLogger(out io.Writer, o serveFlags) (*slog.Logger, error) {
	level := o.level
	if level == nil {
		level = &slog.LevelVar{}
	}
	level.Set(levelOf(o.verbosity))
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnits}
	switch o.logFormat {
	case "text":
		return slog.New(foreign.Log(summed(slog.NewTextHandler(out, options)))), nil
	case "json":
		return slog.New(foreign.Log(summed(slog.NewJSONHandler(out, options)))), nil
	}
	return nil, fmt.Errorf("--log-format %q is unknown: use text or json", o.logFormat)
}

func levelOf(verbosity int) slog.Level {
	switch {
	case verbosity < 0:
		return slog.LevelWarn
	case verbosity >= 3:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// withUnits writes durations as "1.5s", in JSON too, where slog would write a number of nanoseconds.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

const (
	// sumEvery is the interval in which repetitions of a message are summed up.
	sumEvery = time.Minute
	// sumSubjects is the number of subjects, such as failing webhooks, for which a message is logged within that time.
	sumSubjects = 5
)

// summer is a handler that logs a message once for each of its subjects, and then logs each minute the number of
// repetitions. It logs all requests at the verbosity for requests.
type summer struct {
	slog.Handler
	with  string // attributes of the logger
	state *sums
}

type sums struct {
	mu       sync.Mutex
	messages map[string]*sum
}

// sum is a message within a minute.
type sum struct {
	subjects []string
	repeated int
	last     func(repeated int) // logs the last message held back
}

func summed(h slog.Handler) slog.Handler {
	return &summer{Handler: h, state: &sums{messages: map[string]*sum{}}}
}

// Handle implements slog.Handler.
func (s *summer) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo || !s.holdBack(r) {
		return s.Handler.Handle(ctx, r)
	}
	return nil
}

// holdBack reports whether r is one of many.
func (s *summer) holdBack(r slog.Record) bool {
	subject := s.with + subjectOf(r)
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	m := s.state.messages[r.Message]
	if m == nil {
		s.state.messages[r.Message] = &sum{subjects: []string{subject}}
		time.AfterFunc(sumEvery, func() { s.state.end(r.Message) })
		return false
	}
	if len(m.subjects) < sumSubjects && !slices.Contains(m.subjects, subject) {
		m.subjects = append(m.subjects, subject)
		return false
	}
	m.repeated++
	kept := r.Clone()
	m.last = func(repeated int) {
		kept.AddAttrs(slog.Int("repeated", repeated), slog.Duration("within", sumEvery))
		_ = s.Handler.Handle(context.Background(), kept)
	}
	return true
}

// end logs how often a message was held back within the last minute. The next such message is logged again.
func (s *sums) end(message string) {
	s.mu.Lock()
	m := s.messages[message]
	delete(s.messages, message)
	s.mu.Unlock()
	if m.repeated > 0 {
		m.last(m.repeated)
	}
}

// details lists the attributes that differ between repetitions of a message with the same subject.
var details = []string{
	"error", "took", "after", "auditID", "from", "revision", "used",
	// of requests
	"latency", "audit-ID", "srcIP", "URI", "bytes", "userAgent",
	"authentication", "impersonation", "apf-queue-wait", "authorization", "mutating-webhook", "validating-webhook",
	"etcd", "response-write",
}

func subjectOf(r slog.Record) string {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		if !slices.Contains(details, a.Key) {
			fmt.Fprintf(&b, "%s=%s ", a.Key, a.Value)
		}
		return true
	})
	return b.String()
}

// WithAttrs implements slog.Handler.
func (s *summer) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &summer{Handler: s.Handler.WithAttrs(attrs), with: s.with + fmt.Sprint(attrs), state: s.state}
}

// WithGroup implements slog.Handler.
func (s *summer) WithGroup(name string) slog.Handler {
	return &summer{Handler: s.Handler.WithGroup(name), with: s.with + name + ".", state: s.state}
}
