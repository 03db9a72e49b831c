package foreign

import (
	"context"
	"fmt"
	"log/slog"
)

// maxLogged bounds a message and each attribute of a log line, in bytes. It is the last resort: libraries log errors
// that contain whole responses.
const maxLogged = 16 << 10

// Log returns a handler that passes records to next with messages, texts and errors cut to 16 KiB.
func Log(next slog.Handler) slog.Handler { return &logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	long := len(r.Message) > maxLogged
	r.Attrs(func(a slog.Attr) bool {
		_, cut := shortened(a)
		long = long || cut
		return !long
	})
	if !long {
		return h.Handler.Handle(ctx, r)
	}
	out := slog.NewRecord(r.Time, r.Level, Clip(r.Message, maxLogged), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		a, _ = shortened(a)
		out.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i], _ = shortened(a)
	}
	return &logHandler{h.Handler.WithAttrs(out)}
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name)}
}

// shortened returns the attribute with a bounded text, and whether it has changed.
func shortened(a slog.Attr) (slog.Attr, bool) {
	text := ""
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			text = v.Error()
		case fmt.Stringer:
			text = v.String()
		case []byte:
			text = string(v[:min(len(v), maxLogged+1)])
		}
	}
	if len(text) <= maxLogged {
		return a, false
	}
	return slog.String(a.Key, Clip(text, maxLogged)), true
}
