package konnectivity

import (
	"math/rand/v2"
	"testing"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// TestQueueModel compares queues of one peer with lists: order, bounds and the bytes that they hold together.
func TestQueueModel(t *testing.T) {
	data, cuts := make([]byte, 4<<20), 0
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		var held Held
		queues, models := make([]*Queue, 100), make([][]*client.Packet, 100)
		for i := range queues {
			queues[i] = NewQueue(&held, func() {
				cuts++
				longest := int64(0)
				for _, q := range queues {
					longest = max(longest, q.bytes.Load())
				}
				var mine int64
				for _, p := range models[i] {
					mine += sizeOf(p)
				}
				// The packet that passed the bound may be in the model of its queue only after Put.
				if mine+sizeOf(Data(0, data)) < longest {
					t.Fatalf("seed %d: a queue of %d bytes was ended, another has %d", seed, mine, longest)
				}
				models[i] = nil
			})
		}
		for range 1000 {
			i := random.IntN(len(queues))
			q := queues[i]
			if random.IntN(4) == 0 {
				p, _ := q.Take()
				var want *client.Packet
				if len(models[i]) > 0 {
					want, models[i] = models[i][0], models[i][1:]
				}
				if p != want {
					t.Fatalf("seed %d: another packet", seed)
				}
				continue
			}
			p := Data(int64(i), data[:random.IntN(len(data)+1)>>(random.IntN(2)*random.IntN(22))])
			ended := q.mu.ended
			if took := q.Put(p); took && !ended && !q.mu.ended {
				models[i] = append(models[i], p)
			}
			var sum int64
			for i, m := range models {
				var mine int64
				for _, p := range m {
					mine += sizeOf(p)
				}
				if sum += mine; len(m) > MaxQueued || len(m) > 1 && mine > maxQueuedBytes {
					t.Fatalf("seed %d: queue %d holds %d packets, %d bytes", seed, i, len(m), mine)
				}
			}
			if held.Bytes() != sum || sum > MaxHeld {
				t.Fatalf("seed %d: %d bytes are held, the packets have %d, %d may be", seed, held.Bytes(), sum, MaxHeld)
			}
		}
		for _, q := range queues {
			q.Discard()
		}
		if held.Bytes() != 0 || len(held.mu.queues) != 0 {
			t.Fatalf("seed %d: at the end %d bytes and %d queues are held", seed, held.Bytes(), len(held.mu.queues))
		}
	}
	if cuts == 0 {
		t.Error("no queue was ended: the test is too small")
	}
}
