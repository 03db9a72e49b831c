package embedded

import (
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// TestHalfOpenClients closes a store while clients of its etcd have begun a handshake and do not go on. The data is
// closed, too: it can be opened again at once.
func TestHalfOpenClients(t *testing.T) {
	t.Parallel()
	e := Config{Dir: filepath.Join(t.TempDir(), "etcd"), NoSync: true, ListenClientURL: "http://127.0.0.1:0"}
	config := store.Config{Etcd: e, Log: slog.New(slog.DiscardHandler)}
	s, err := store.Open(testContext(t), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "k/a", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, []string{"", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[i%3])
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute): // etcd waits for two
		t.Fatal("the store waits for clients that do not go on")
	}
	if s, err = store.Open(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Get(t.Context(), "k/a"); err != nil || string(r.Value) != "{}" {
		t.Errorf("%s, %v", r.Value, err)
	}
}
