// Package etcdtest opens stores on an embedded etcd, for tests that are about etcd or need its socket.
//
// It links etcd's server into the test binary. Tests that only need a store use package memory: it starts at once, and
// links nothing.
package etcdtest

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// Context returns a context that ends with the test, or after five minutes: enough for a busy machine.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Config returns the configuration of the test's own etcd with a socket, which other stores can use.
func Config(t testing.TB) embedded.Config {
	return embedded.Config{
		Dir: filepath.Join(t.TempDir(), "etcd"), NoSync: true, ListenClientURL: "http://127.0.0.1:0",
	}
}

// Open returns a store on an embedded etcd that must stay silent. It is closed with the test. Without a directory the
// etcd is new.
func Open(t testing.TB, e embedded.Config) *store.Store {
	t.Helper()
	if e.Dir == "" {
		e.Dir = filepath.Join(t.TempDir(), "etcd")
	}
	e.NoSync = true
	var log logtest.Log
	s, err := store.Open(Context(t),
		store.Config{Etcd: e, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		for line := range strings.Lines(log.String()) {
			// Warnings about a slow machine are no fault. Tests lose leases on purpose.
			if !slices.ContainsFunc([]string{"request stats", "too long", "lease not found"},
				func(text string) bool { return strings.Contains(line, text) }) {
				t.Errorf("etcd logged: %s", line)
			}
		}
	})
	return s
}
