package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// keep is a Config that keeps the connection it has opened.
type keep struct {
	Config
	opened *remote
}

func (k *keep) Open(ctx context.Context, e store.Environment) (store.Backend, error) {
	b, err := k.Config.Open(ctx, e)
	k.opened, _ = b.(*remote)
	return b, err
}

// connect opens a store on the etcd of s.
func connect(t testing.TB, s *store.Store) (*store.Store, *remote) {
	t.Helper()
	k := &keep{Config: Config{Endpoints: []string{s.ClientURL()}}}
	ext, err := store.Open(etcdtest.Context(t), store.Config{Etcd: k, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ext.Close() })
	return ext, k.opened
}

// An external cluster's alarm is seen, and its end too.
func TestQuotaExternal(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	e := etcdtest.Config(t)
	e.Quota = 4 << 20
	inner, err := store.Open(ctx, store.Config{Etcd: e, Log: slog.New(slog.DiscardHandler)}) // it may log errors
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	})
	s, r := connect(t, inner)
	if err := s.CheckRoom(ctx); err != nil {
		t.Error(err)
	}
	for i := 0; err == nil; i++ {
		_, err = s.Create(ctx, fmt.Sprintf("k/%d", i), make([]byte, 100<<10))
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Error(err)
	}
	if err := s.CheckRoom(ctx); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("check: %v", err)
	}
	if _, err := r.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckRoom(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

// TestWatchResumes checks that a watch continues without a gap after etcd goes away and comes back at the same address
// with the same data.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	dir := filepath.Join(t.TempDir(), "etcd")
	server := etcdtest.Open(t, embedded.Config{Dir: dir, ListenClientURL: "http://127.0.0.1:0"})
	url := server.ClientURL()
	s, _ := connect(t, server)
	r1, err := s.Create(ctx, "k/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(ctx, r1)
	if b := <-watch; len(b.Events) != 1 || b.Revision != r1 {
		t.Errorf("%+v", b)
	}
	server.Close()
	hurry, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	if _, err := s.Create(hurry, "k/lost", nil); !errors.Is(err, store.ErrUncertain) {
		t.Errorf("write without a server: %v", err)
	}
	cancel()
	server = etcdtest.Open(t, embedded.Config{Dir: dir, ListenClientURL: url})
	r2, err := server.Create(ctx, "k/2", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []store.Event
	for b := range watch {
		if got = append(got, b.Events...); b.Revision >= r2 || b.Err != nil {
			break
		}
	}
	if len(got) != 1 || got[0].Key != "k/2" {
		t.Errorf("after the restart: %v", got)
	}
}

// A lease that etcd has lost does not fail a write.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	s, l := connect(t, etcdtest.Open(t, etcdtest.Config(t)))
	ctx := etcdtest.Context(t)
	w := s.With(store.Options{TTL: time.Hour})
	if _, err := w.Create(ctx, "a", nil); err != nil {
		t.Fatal(err)
	}
	leases, err := l.client.Leases(ctx)
	if err != nil || len(leases.Leases) != 1 {
		t.Fatal(leases, err)
	}
	if _, err := l.client.Revoke(ctx, leases.Leases[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(ctx, "b", nil); err != nil {
		t.Error(err)
	}
}
