package bowsprit

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// logged is a log that is read while it is written.
type logged struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// A step of the start that takes more than two seconds says what it is doing, at once and then from time to time.
func TestSlowStepsAreNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out logged
		done := noteSlow(slog.New(slog.NewTextHandler(&out, nil)), "open the store", "dir", "/data")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.text(); got != "" {
			t.Errorf("after a second: %s", got)
		}
		time.Sleep(40 * time.Second)
		done()
		if got := out.text(); strings.Count(got, "\n") != 2 ||
			!strings.Contains(got, `msg="the start takes long" step="open the store" after=2s dir=/data`) {
			t.Errorf("after 41 seconds: %s", got)
		}
	})
}
