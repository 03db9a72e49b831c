package konnectivity

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// TestOutboxStall has a peer that reads nothing: posts end at their bound, and the peer is given up after SendLimit.
func TestOutboxStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, gone := context.WithCancel(t.Context())
		began := time.Now()
		var after time.Duration
		o := NewOutbox(func(*client.Packet) error { <-ctx.Done(); return ErrGone }, ctx.Done(), func() {
			after = time.Since(began)
			gone()
		})
		go o.Run()
		posts := 0
		for id := int64(0); o.Post(CloseRequest(id)); id++ {
			posts++
			synctest.Wait()
		}
		if posts != MaxPosted+1 { // one is being sent
			t.Errorf("%d packets were taken, want %d", posts, MaxPosted+1)
		}
		patience, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := o.Send(patience, Data(1, []byte("x"))); err == nil {
			t.Error("data was sent")
		}
		<-ctx.Done()
		synctest.Wait()
		if after != SendLimit {
			t.Errorf("given up after %v, want %v", after, SendLimit)
		}
	})
}

// TestOutboxOrder posts and sends at random: all packets arrive, posts before the data that is sent after them, and one
// close for each connection that was posted several times.
func TestOutboxOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var got, want []int64
		o := NewOutbox(func(p *client.Packet) error {
			if id, closes := closed(p); closes {
				got = append(got, -id)
			} else {
				got = append(got, p.GetData().GetConnectID())
			}
			return nil
		}, t.Context().Done(), func() { t.Error("stalled") })
		posted := map[int64]bool{}
		for range 200 {
			id := 1 + random.Int64N(20)
			if random.IntN(2) == 0 {
				if !o.Post(CloseRequest(id)) {
					t.Fatal("no room")
				}
				if !posted[id] {
					want = append(want, -id)
				}
				posted[id] = true
				continue
			}
			if err := o.Send(t.Context(), Data(id, nil)); err != nil {
				t.Fatal(err)
			}
			want, posted = append(want, id), map[int64]bool{}
		}
		if err := o.Send(t.Context(), Data(0, nil)); err != nil {
			t.Fatal(err)
		}
		want = append(want, 0)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d packets, want %d", seed, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("seed %d: packet %d is %d, want %d", seed, i, got[i], want[i])
			}
		}
	}
}
