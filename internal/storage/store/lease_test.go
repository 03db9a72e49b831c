package store

import (
	"context"
	"testing"
	"time"
)

// granter is a backend that only grants leases, numbered from 1.
type granter struct {
	Backend
	seconds []int64 // of each lease
}

func (g *granter) Grant(_ context.Context, seconds int64) (int64, error) {
	g.seconds = append(g.seconds, seconds)
	return int64(len(g.seconds)), nil
}

func (g *granter) Failed() <-chan struct{} { return nil }

// TestLeaseShared checks that keys written within a minute share a lease, up to the number that fits into a
// transaction.
func TestLeaseShared(t *testing.T) {
	t.Parallel()
	etcd := &granter{}
	s := &Store{backend: etcd, leases: newLeases(), background: background{done: make(chan struct{})}}
	ctx := t.Context()
	now := time.Now()
	s.leases.now = func() time.Time { return now }
	id := func(ttl time.Duration) int64 {
		t.Helper()
		id, err := s.lease(ctx, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := id(time.Hour)
	if other := id(2 * time.Hour); other == first {
		t.Error("another TTL got the same lease")
	}
	now = now.Add(59 * time.Second)
	for range leaseKeys - 1 {
		if got := id(time.Hour); got != first {
			t.Fatalf("lease %d, want %d", got, first)
		}
	}
	second := id(time.Hour)
	if second == first {
		t.Errorf("more than %d keys under one lease", leaseKeys)
	}
	now = now.Add(time.Minute)
	if third := id(time.Hour); third == second {
		t.Error("a lease is given out after its time")
	}
	if got := etcd.seconds[first-1]; got != 3660 {
		t.Errorf("granted for %d seconds", got)
	}
	for i := range leaseKinds + 1 {
		id(time.Duration(i+1) * time.Minute)
	}
	if n := len(s.leases.mu.byTTL); n > leaseKinds {
		t.Errorf("%d leases are remembered", n)
	}
}
