package external

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// refused opens a store that must not open, and returns the error's text.
func refused(t *testing.T, c store.Opener, want ...string) {
	t.Helper()
	s, err := store.Open(etcdtest.Context(t), store.Config{Etcd: c, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		s.Close()
		t.Fatal("the store opened")
	}
	t.Log(err)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestOpenRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key.pem")
	private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKCS8PrivateKey(private)
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	url := "http://" + busy.Addr().String()

	for name, c := range map[string]struct {
		Config
		want []string
	}{
		"no endpoints": {Config{}, []string{"--etcd-servers"}},
		"certificate alone": {Config{Endpoints: []string{url}, CertFile: file},
			[]string{"together"}},
		"CA is missing": {Config{Endpoints: []string{url}, CAFile: file + "x"},
			[]string{file + "x", "no such file", "--etcd-cafile"}},
		"CA is none": {Config{Endpoints: []string{url}, CAFile: file},
			[]string{file, "--etcd-cafile"}},
		"certificate is key": {Config{Endpoints: []string{url}, CertFile: key, KeyFile: key},
			[]string{key, "--etcd-certfile"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.Config, c.want...) })
	}
}

func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	ctx, cancel := context.WithTimeout(etcdtest.Context(t), time.Second)
	defer cancel()
	_, err := store.Open(ctx,
		store.Config{Etcd: Config{Endpoints: []string{"http://" + address}}, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("%v", err)
	}
}
