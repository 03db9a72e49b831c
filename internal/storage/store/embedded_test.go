//go:build moving

package store

import (
	"errors"
	"sync"
	"testing"
)

// TestRevisionDuringCommit checks that a request for the revision does not wait while etcd locks its key space to write
// the database to the disk.
func TestRevisionDuringCommit(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, Embedded{}), testContext(t)
	last, err := s.Create(ctx, "k/a", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	commit, ok := s.backend.(*local).etcd.Server.Backend().ReadTx().(sync.Locker)
	if !ok {
		t.Fatal("etcd's reads have no lock any more: does the key space tell its revision without one?")
	}
	commit.Lock()
	defer commit.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if got, err := s.Revision(ctx); got != last || err != nil {
			t.Errorf("%d %v, after a write at %d", got, err, last)
		}
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		t.Error("no answer")
	}
}

// TestRevisionSeen checks that Revision is not below any visible revision: from a write refused because of another,
// unacknowledged one, from a read, from a watch.
func TestRevisionSeen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		look func(t *testing.T, s *Store)
	}{
		{"refused write", func(t *testing.T, s *Store) {
			if _, err := s.Create(testContext(t), "k/a", []byte("{}")); !errors.Is(err, ErrExists) {
				t.Fatal(err)
			}
		}},
		{"read", func(t *testing.T, s *Store) {
			if _, err := s.Get(testContext(t), "k/a"); err != nil {
				t.Fatal(err)
			}
		}},
		{"watch", func(t *testing.T, s *Store) {
			if batch := <-s.Watch(testContext(t), 1); batch.Err != nil {
				t.Fatal(batch.Err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t, Embedded{}), testContext(t)
			last, err := s.Create(ctx, "k/a", []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			s.backend.(*local).seen.Store(0) // as if it were not acknowledged
			test.look(t, s)
			if got, err := s.Revision(ctx); got < last || err != nil {
				t.Errorf("%d %v, after a write at %d", got, err, last)
			}
		})
	}
}

// TestRevisionOfOthers checks that writes of another program through ListenClientURL count at once.
func TestRevisionOfOthers(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"}), testContext(t)
	other, err := s.client.Put(ctx, "/elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Revision(ctx); got < other.Header.Revision || err != nil {
		t.Errorf("%d %v, after a write at %d", got, err, other.Header.Revision)
	}
}
