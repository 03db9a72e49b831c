package encrypt

//lint:file-ignore SA1019 configurations may still name plugins of KMS v1

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apiserver/pkg/util/feature"
	kmsv1 "k8s.io/kms/apis/v1beta1"
)

// pluginV1 is a plugin of the first version of the KMS API. Its way to encrypt can be changed while it serves.
type pluginV1 struct {
	kmsv1.UnimplementedKeyManagementServiceServer
	mark   byte // identifies the plugin that has encrypted a key
	answer atomic.Pointer[func(ctx context.Context, in []byte) ([]byte, error)]
	calls  atomic.Int64
}

func (*pluginV1) Version(context.Context, *kmsv1.VersionRequest) (*kmsv1.VersionResponse, error) {
	return &kmsv1.VersionResponse{Version: "v1beta1", RuntimeName: "test", RuntimeVersion: "1"}, nil
}

func (p *pluginV1) Encrypt(ctx context.Context, r *kmsv1.EncryptRequest) (*kmsv1.EncryptResponse, error) {
	p.calls.Add(1)
	if f := p.answer.Load(); f != nil {
		out, err := (*f)(ctx, r.Plain)
		return &kmsv1.EncryptResponse{Cipher: out}, err
	}
	return &kmsv1.EncryptResponse{Cipher: append([]byte{p.mark}, r.Plain...)}, nil
}

func (p *pluginV1) Decrypt(ctx context.Context, r *kmsv1.DecryptRequest) (*kmsv1.DecryptResponse, error) {
	p.calls.Add(1)
	if f := p.answer.Load(); f != nil {
		out, err := (*f)(ctx, r.Cipher)
		return &kmsv1.DecryptResponse{Plain: out}, err
	}
	if len(r.Cipher) == 0 || r.Cipher[0] != p.mark {
		return nil, status.Error(codes.InvalidArgument, "another plugin's")
	}
	return &kmsv1.DecryptResponse{Plain: r.Cipher[1:]}, nil
}

// startV1 serves until stop is called or the test is over.
func startV1(t *testing.T, mark byte) (p *pluginV1, socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p = &pluginV1{mark: mark}
	s := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	kmsv1.RegisterKeyManagementServiceServer(s, p)
	var all sync.WaitGroup
	all.Go(func() { _ = s.Serve(l) })
	stop = sync.OnceFunc(func() { s.Stop(); all.Wait(); _ = os.RemoveAll(dir) })
	t.Cleanup(stop)
	return p, socket, stop
}

// openV1 is open with plugins of the first version. The library's gate for them is the process's, so the test must not
// run in parallel with others, and closes the gate at its end.
func openV1(t *testing.T, providers ...string) *Encryption {
	t.Helper()
	t.Cleanup(func() {
		if err := feature.DefaultMutableFeatureGate.Set("KMSv1=false"); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	write(t, file, configuration("secrets", providers...))
	e, err := Open(Config{
		File: file, Server: "s", Kind: kind, KMSv1: true, Log: slog.New(slog.DiscardHandler),
		Path: func(key string) string { return "/registry/" + key },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func kmsProvider(name, socket string) string {
	return fmt.Sprintf("  - kms: {apiVersion: v1, name: %s, cachesize: 1, timeout: 1s, endpoint: 'unix://%s'}\n", name, socket)
}

// TestHostilePluginV1 runs a KMS v1 plugin with invalid responses of all kinds. Each write and read fails with a short
// error, without the value, and the plugin's next valid response is used.
func TestHostilePluginV1(t *testing.T) {
	p, socket, _ := startV1(t, 'a')
	e := openV1(t, kmsProvider("box", socket))
	const secret = `{"password":"hunter2"}`
	long := strings.Repeat("\x1b[31mno\n", 100<<10)
	stored, err := e.Encrypt(t.Context(), "secrets", "secrets/a", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	// The cache has one key; another value replaces it, so that reading the first asks the plugin.
	spoil := func() {
		t.Helper()
		if _, err := e.Encrypt(t.Context(), "secrets", "secrets/b", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for name, answer := range map[string]func(context.Context, []byte) ([]byte, error){
		"an error": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no") },
		"a long error": func(context.Context, []byte) ([]byte, error) {
			return nil, status.Error(codes.Internal, long[:4000])
		},
		"a huge error": func(context.Context, []byte) ([]byte, error) {
			return nil, status.Error(codes.Internal, long)
		},
		"a huge answer":  func(context.Context, []byte) ([]byte, error) { return make([]byte, 100<<20), nil },
		"another key":    func(context.Context, []byte) ([]byte, error) { return []byte("0123456789abcdef"), nil },
		"no key":         func(context.Context, []byte) ([]byte, error) { return nil, nil },
		"a large answer": func(context.Context, []byte) ([]byte, error) { return make([]byte, 3<<20), nil },
		"silence":        func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		spoil()
		p.answer.Store(&answer)
		check := func(desc string, out []byte, err error) {
			t.Helper()
			if err == nil {
				t.Errorf("%s: %s: %d bytes", name, desc, len(out))
				return
			}
			text := err.Error()
			if len(text) > 4<<10 || strings.Contains(text, "hunter2") || strings.Contains(text, "\x1b") {
				t.Errorf("%s: %s: %d bytes: %.200q", name, desc, len(text), text)
			}
		}
		plain, err := e.Decrypt("secrets", "secrets/a", stored)
		check("read", plain, err)
		out, err := e.Encrypt(t.Context(), "secrets", "secrets/c", []byte(secret))
		if name != "another key" && name != "no key" { // a plugin may encrypt as it likes: reads find out
			check("write", out, err)
		}
		p.answer.Store(nil)
		e.outages.Clear()
		if plain, err := e.Decrypt("secrets", "secrets/a", stored); err != nil || string(plain) != secret {
			t.Errorf("%s: afterwards: %q, %v", name, plain, err)
		}
	}
}

// TestDeadPluginV1 stops and restarts a KMS v1 plugin.
func TestDeadPluginV1(t *testing.T) {
	_, socket, stop := startV1(t, 'a')
	e := openV1(t, kmsProvider("box", socket), identity)
	stored, err := e.Encrypt(t.Context(), "secrets", "secrets/a", []byte("{}"))
	if err != nil || !strings.HasPrefix(string(stored), "k8s:enc:kms:v1:box:") {
		t.Fatalf("%.30q, %v", stored, err)
	}
	stop()
	other := openV1(t, kmsProvider("box", socket), identity) // without the key in its cache
	if _, err := other.Decrypt("secrets", "secrets/a", stored); err == nil {
		t.Error("a value is decrypted without its plugin")
	}
	if _, err := other.Encrypt(t.Context(), "secrets", "secrets/a", []byte("{}")); err == nil {
		t.Error("a value is stored without its plugin, which is the first provider")
	}
	if plain, err := other.Decrypt("secrets", "secrets/b", []byte("{}")); err != nil || string(plain) != "{}" {
		t.Errorf("a value of before: %q, %v", plain, err)
	}
}

// TestRotatePluginsV1 replaces a plugin of the first version by another one, and that by a key in the file: values of
// each are read, and are stale, as long as their provider is in the file.
func TestRotatePluginsV1(t *testing.T) {
	_, a, _ := startV1(t, 'a')
	_, b, _ := startV1(t, 'b')
	one, two := kmsProvider("one", a), kmsProvider("two", b)
	local := provider("secretbox", "k", keyA)
	values := map[string][]byte{}
	for _, step := range []struct {
		providers []string
		prefix    string
		gone      []string
	}{
		{[]string{one, identity}, "k8s:enc:kms:v1:one:", nil},
		{[]string{two, one, identity}, "k8s:enc:kms:v1:two:", nil},
		{[]string{local, two, one}, "k8s:enc:secretbox:v1:k:", nil},
		{[]string{two, local}, "k8s:enc:kms:v1:two:", []string{"k8s:enc:kms:v1:one:"}},
	} {
		e := openV1(t, step.providers...)
		key := fmt.Sprint("secrets/", len(values))
		stored, err := e.Encrypt(t.Context(), "secrets", key, []byte(key))
		if err != nil || !strings.HasPrefix(string(stored), step.prefix) {
			t.Fatalf("%s: %.30q, %v", step.prefix, stored, err)
		}
		values[key] = stored
		for key, stored := range values {
			lost := false
			for _, prefix := range step.gone {
				lost = lost || strings.HasPrefix(string(stored), prefix)
			}
			plain, err := e.Decrypt("secrets", key, append([]byte(nil), stored...))
			if lost != (err != nil) || !lost && string(plain) != key {
				t.Errorf("%s first: %s of %.30q: %q, %v", step.prefix, key, stored, plain, err)
			}
			stale := !strings.HasPrefix(string(stored), step.prefix)
			if !lost && e.Stale("secrets", key, stored) != stale {
				t.Errorf("%s first: %.30q: stale is not %v", step.prefix, stored, stale)
			}
		}
	}
}
