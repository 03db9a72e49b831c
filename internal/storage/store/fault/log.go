package fault

import (
	"context"
	"log/slog"
	"runtime"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger passes etcd's warnings and errors on to log. When etcd logs Fatal or Panic, fault keeps the reason and
// only the goroutine ends: an embedded server must not end its host process, and etcd has not acknowledged unfinished
// work.
func Logger(log *slog.Logger, fault *Fault) *zap.Logger {
	core := &logCore{log: log.With("component", "etcd"), fault: fault}
	return zap.New(core, zap.WithFatalHook(giveUp{}), zap.WithPanicHook(giveUp{}))
}

type giveUp struct{}

func (giveUp) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) { runtime.Goexit() }

// logCore is a zapcore.Core that writes to slog.
type logCore struct {
	log    *slog.Logger
	fault  *Fault
	fields []zapcore.Field
}

func (c *logCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{log: c.log, fault: c.fault, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	level := slog.LevelWarn
	switch {
	case e.Level > zapcore.ErrorLevel:
		why := e.Message
		if reason, ok := enc.Fields["error"].(string); ok {
			why += ": " + reason
		}
		c.fault.Set(why)
		level = slog.LevelError
	case c.fault.stopping.Load(), expected(e.Message, enc.Fields["error"]):
		level = slog.LevelDebug
	case e.Level == zapcore.ErrorLevel:
		level = slog.LevelError
	}
	if !c.log.Enabled(context.Background(), level) {
		return nil
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	c.log.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

func (c *logCore) Sync() error { return nil }

// expected reports whether an etcd warning is about an intended condition.
func expected(message string, reason any) bool {
	for _, m := range []string{
		"Running http and grpc server on single port",
		"simple token is not cryptographically signed",
		"cannot campaign at term", // the embedded etcd leads at once
		"is unpromotable and can not campaign",
		"bootstrap failed", // Open returns this error
		// After a restart etcd retries without a pause until the first entries of its log have been applied.
		"failed to publish local member to cluster through raft",
		"closing client listener",
		"retrying of unary invoker failed", // the call, or Open, returns this error
		// Twice a minute etcd tries to remove old segments of its log, and fails for segments that it still uses.
		"failed to lock file",
	} {
		if strings.Contains(message, m) {
			return true
		}
	}
	// A new member looks up its storage version before its first commit, and again four seconds later.
	text, _ := reason.(string)
	return strings.Contains(text, "missing term information")
}
