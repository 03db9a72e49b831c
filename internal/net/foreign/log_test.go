package foreign

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLog holds that no message and no attribute makes a long line, and that short ones are as they were.
func TestLog(t *testing.T) {
	long := strings.Repeat("x", 50<<20)
	for name, write := range map[string]func(*slog.Logger){
		"message":   func(l *slog.Logger) { l.Info(long) },
		"string":    func(l *slog.Logger) { l.Info("m", "a", long) },
		"error":     func(l *slog.Logger) { l.Info("m", "error", errors.New(long)) },
		"stringer":  func(l *slog.Logger) { l.Info("m", "url", &url.URL{Path: long}) },
		"bytes":     func(l *slog.Logger) { l.Info("m", "body", []byte(long)) },
		"of logger": func(l *slog.Logger) { l.With("a", long).WithGroup("g").Info("m", "b", 1) },
	} {
		var out bytes.Buffer
		write(slog.New(Log(slog.NewTextHandler(&out, nil))))
		if out.Len() > 2*maxLogged || !strings.Contains(out.String(), "bytes in all") {
			t.Errorf("%s: %d bytes", name, out.Len())
		}
	}
	var out, want bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	for _, h := range []slog.Handler{Log(slog.NewTextHandler(&out, options)), slog.NewTextHandler(&want, options)} {
		slog.New(h).With("a", "b").WithGroup("g").Warn("m", "error", errors.New("e"), "n", 1, "s", "x y")
	}
	if out.String() != want.String() {
		t.Errorf("%s, want %s", &out, &want)
	}
}

func TestStatus(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	s := &metav1.Status{Message: long, Reason: metav1.StatusReason(long), Details: &metav1.StatusDetails{Name: long}}
	for range 10_000 {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Message: long, Field: long})
	}
	Status(s)
	total := len(s.Message) + len(s.Reason) + len(s.Details.Name)
	for _, c := range s.Details.Causes {
		total += len(c.Message) + len(c.Field)
	}
	if len(s.Details.Causes) != maxCauses || total > MaxMessage+300*MaxText {
		t.Errorf("%d causes, %d bytes", len(s.Details.Causes), total)
	}
	lines := &metav1.Status{Message: "first\nsecond\tline"}
	if Status(lines); lines.Message != "first\nsecond\tline" {
		t.Errorf("%q", lines.Message)
	}
}
