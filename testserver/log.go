package testserver

import (
	"bytes"
	"sync"
)

// maxLog bounds the bytes of a server's log that are kept for a failed test.
const maxLog = 256 << 10

// tail keeps the last lines that were written to it, at most maxLog bytes. Its methods may be called from any
// goroutine.
type tail struct {
	mu   sync.Mutex
	text []byte // at most twice maxLog
	cut  bool   // earlier lines are gone
}

// Write implements io.Writer for slog, which writes whole lines.
func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 2*maxLog {
		rest := l.text[len(l.text)-maxLog:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[i+1:]
		}
		l.text, l.cut = append([]byte(nil), rest...), true
	}
	return len(p), nil
}

// String returns the lines.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return "earlier lines are not kept\n" + string(l.text)
	}
	return string(l.text)
}
