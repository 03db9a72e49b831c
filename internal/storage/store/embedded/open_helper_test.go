package embedded

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for a busy machine
	t.Cleanup(cancel)
	return ctx
}

// keep is a Config that keeps the server it has opened.
type keep struct {
	Config
	opened *local
}

func (k *keep) Open(ctx context.Context, e store.Environment) (store.Backend, error) {
	b, err := k.Config.Open(ctx, e)
	k.opened, _ = b.(*local)
	return b, err
}

// open returns a store that must stay silent, and its server.
func open(t testing.TB, c Config) (*store.Store, *local) {
	t.Helper()
	var log logtest.Log
	s, l := openLogged(t, c, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
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
	return s, l
}

func openLogged(t testing.TB, c Config, log *slog.Logger) (*store.Store, *local) {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "etcd")
	}
	c.NoSync = true
	k := &keep{Config: c}
	s, err := store.Open(testContext(t), store.Config{Etcd: k, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return s, k.opened
}
