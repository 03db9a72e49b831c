package memory_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
)

// TestExpiry checks that a key expires with its lease, as an event, and that a closed etcd stops the time of leases.
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		etcd := memory.New()
		s, err := store.Open(t.Context(), store.Config{Etcd: etcd})
		if err != nil {
			t.Fatal(err)
		}
		rev, err := s.With(store.Options{TTL: time.Minute}).Create(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s, err = store.Open(t.Context(), store.Config{Etcd: etcd}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		began := time.Now()
		if r, err := s.Get(t.Context(), "a"); err != nil || r.Revision != rev {
			t.Errorf("%+v, %v", r, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := <-s.Watch(ctx, rev+1)
		if len(b.Events) != 1 || !b.Events[0].Deleted || b.Events[0].Key != "a" {
			t.Errorf("%+v", b)
		}
		if took := time.Since(began); took != 63*time.Second { // a shared lease lasts a twentieth longer
			t.Errorf("it expired after %s", took)
		}
	})
}

// TestShared checks that stores share an etcd: each sees the other's writes.
func TestShared(t *testing.T) {
	t.Parallel()
	etcd := memory.New()
	var both [2]*store.Store
	for i := range both {
		s, err := store.Open(t.Context(), store.Config{Etcd: etcd.Shared()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if both[i] = s; !s.Shared() {
			t.Error("the store believes that it writes alone")
		}
	}
	rev, err := both[0].Create(t.Context(), "a", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if b := <-both[1].Watch(t.Context(), rev); len(b.Events) != 1 || string(b.Events[0].Value) != "1" {
		t.Errorf("%+v", b)
	}
	if _, err := both[1].Create(t.Context(), "a", nil); !errors.Is(err, store.ErrExists) {
		t.Error(err)
	}
}

// TestNoDatabase checks that a store in memory has no snapshots, and room for everything.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Snapshot(t.Context(), io.Discard); !errors.Is(err, store.ErrNoDatabase) {
		t.Error(err)
	}
	size, err := s.Size(t.Context())
	if room := s.CheckRoom(t.Context()); size != 0 || err != nil || room != nil {
		t.Error(size, err, room)
	}
}
