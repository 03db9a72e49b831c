package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestLogSumsUp checks that a repeated message is logged once for each subject and then summed up, and that durations
// have units.
func TestLogSumsUp(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		synctest.Test(t, func(t *testing.T) {
			var out logtest.Log
			log, err := newLogger(&out, serveFlags{logFormat: format})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				for _, webhook := range []string{"a", "b"} {
					log.Warn("admission webhook failed", "webhook", webhook, "error", fmt.Sprint(i), "took",
						1500*time.Millisecond)
				}
			}
			log.With("component", "etcd").Info("another")
			if got := out.Take(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "1.5s") {
				t.Errorf("%s, at first:\n%s", format, got)
			}
			time.Sleep(sumEvery + time.Second)
			synctest.Wait()
			if got := out.Take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "198") ||
				!strings.Contains(got, "1m0s") {
				t.Errorf("%s, after a minute:\n%s", format, got)
			}
			log.Warn("admission webhook failed", "webhook", "a")
			if got := out.Take(); strings.Count(got, "\n") != 1 {
				t.Errorf("%s, later:\n%s", format, got)
			}
			time.Sleep(2 * sumEvery)
		})
	}
}

// TestLogIsShort checks that many messages at once, such as for installed definitions, make a few lines and a sum.
func TestLogIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Log
		log, _ := newLogger(&out, serveFlags{logFormat: "text"})
		for i := range 1000 {
			log.Info("definition is made", "definition", i)
		}
		time.Sleep(2 * sumEvery)
		synctest.Wait()
		if got := out.Take(); strings.Count(got, "\n") != sumSubjects+1 || !strings.Contains(got, "repeated=995") {
			t.Errorf("%s", got)
		}
	})
}

// TestVerbosity checks which messages each verbosity includes. At 4 each request is logged, even if it repeats another.
func TestVerbosity(t *testing.T) {
	t.Parallel()
	for verbosity, want := range map[int]int{-1: 1, 0: 2, 2: 2, 4: 4} {
		var out bytes.Buffer
		log, _ := newLogger(&out, serveFlags{logFormat: "text", verbosity: verbosity})
		log.Log(t.Context(), slog.LevelDebug, "request")
		log.Log(t.Context(), slog.LevelDebug, "request")
		log.Info("ready")
		log.Warn("slow")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("verbosity %d: %d lines", verbosity, got)
		}
	}
}
