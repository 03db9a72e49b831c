package notify

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// manager listens as systemd does.
func manager(t *testing.T, env map[string]string) (*Manager, func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip("no datagram sockets:", err)
	}
	t.Cleanup(func() { conn.Close() })
	env["NOTIFY_SOCKET"] = name
	return New(func(key string) string { return env[key] }, 7), func() string {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
}

func TestReadyAndStopping(t *testing.T) {
	t.Parallel()
	m, received := manager(t, map[string]string{})
	if err := m.Ready("https://x:1"); err != nil {
		t.Fatal(err)
	}
	if got := received(); got != "READY=1\nSTATUS=Serving https://x:1" {
		t.Errorf("%q", got)
	}
	if err := m.Stopping(); err != nil {
		t.Fatal(err)
	}
	if got := received(); !strings.HasPrefix(got, "STOPPING=1\n") {
		t.Errorf("%q", got)
	}
}

// TestNoManager checks that without a manager Ready and Stopping do nothing and succeed, and that a missing socket is
// an error.
func TestNoManager(t *testing.T) {
	t.Parallel()
	alone := New(func(string) string { return "" }, 1)
	if err := alone.Ready("x"); err != nil {
		t.Error(err)
	}
	alone.Watch(t.Context(), slog.New(slog.DiscardHandler), nil) // returns at once
	gone := &Manager{socket: filepath.Join(t.TempDir(), "gone")}
	if err := gone.Ready("x"); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Error(err)
	}
}

func TestWatchdogIsOfOneProcess(t *testing.T) {
	t.Parallel()
	for pid, want := range map[string]time.Duration{"": 20 * time.Second, "7": 20 * time.Second, "8": 0} {
		env := map[string]string{"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": pid}
		if got := New(func(key string) string { return env[key] }, 7).watchdog; got != want {
			t.Errorf("WATCHDOG_PID=%s: %s, want %s", pid, got, want)
		}
	}
}

// TestWatch checks that the watchdog is fed when the server answers, and not when it fails.
func TestWatch(t *testing.T) {
	t.Parallel()
	m, received := manager(t, map[string]string{"WATCHDOG_USEC": "30000"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Watch(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			if requests.Add(1) < 3 {
				return errors.New("hangs")
			}
			return nil
		})
	}()
	if got := received(); got != "WATCHDOG=1" || requests.Load() < 3 {
		t.Errorf("%q after %d questions", got, requests.Load())
	}
	cancel()
	<-done
}

func TestLive(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	code.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(int(code.Load()))
	}))
	defer server.Close()
	alive := Live(&rest.Config{Host: server.URL})
	if err := alive(t.Context()); err != nil {
		t.Error(err)
	}
	code.Store(http.StatusInternalServerError)
	if err := alive(t.Context()); err == nil || !strings.Contains(err.Error(), "500") {
		t.Error(err)
	}
}
