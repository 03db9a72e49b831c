package konnectivity

import (
	"sync"
	"sync/atomic"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

const (
	// MaxQueued and maxQueuedBytes bound the packets that wait in one Queue. Packets of upstream's agents have 4 KiB,
	// ours MaxData; gRPC bounds a packet to 4 MiB.
	MaxQueued      = 64
	maxQueuedBytes = MaxQueued * MaxData
	// MaxHeld bounds the bytes that wait in all queues of one peer.
	MaxHeld = 128 << 20
	// overhead is the memory of a packet beside its data.
	overhead = 256
)

// Held is the memory that the queues of one peer share. If they hold more than MaxHeld bytes, the longest queue is
// ended. The zero value is ready, and safe for concurrent use.
type Held struct {
	bytes atomic.Int64
	mu    struct {
		sync.Mutex
		queues map[*Queue]struct{}
	}
}

// Bytes returns the number of bytes that all queues hold.
func (h *Held) Bytes() int64 { return h.bytes.Load() }

// shrink ends the longest queues until the bound holds.
func (h *Held) shrink() {
	for h.bytes.Load() > MaxHeld {
		var longest *Queue
		h.mu.Lock()
		for q := range h.mu.queues {
			if longest == nil || q.bytes.Load() > longest.bytes.Load() {
				longest = q
			}
		}
		h.mu.Unlock()
		if longest == nil {
			return
		}
		longest.Discard()
		longest.cut()
	}
}

// Queue holds the packets of one connection for its reader. One goroutine puts, one takes.
type Queue struct {
	held   *Held
	cut    func()        // called when held has ended the queue
	filled chan struct{} // capacity 1: there is a packet, or the queue has ended
	room   chan struct{} // capacity 1: there is room, or the queue has ended
	bytes  atomic.Int64

	mu struct {
		sync.Mutex
		packets []*client.Packet
		ended   bool
	}
}

// NewQueue returns a queue that counts in held. cut is called, without a lock, if held ends the queue.
func NewQueue(held *Held, cut func()) *Queue {
	q := &Queue{held: held, cut: cut, filled: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.mu.queues == nil {
		held.mu.queues = map[*Queue]struct{}{}
	}
	held.mu.queues[q] = struct{}{}
	return q
}

// Put reports whether it has accepted the packet. An ended queue accepts every packet and drops it.
func (q *Queue) Put(p *client.Packet) bool {
	n := sizeOf(p)
	q.mu.Lock()
	if q.mu.ended {
		q.mu.Unlock()
		return true
	}
	if held := q.bytes.Load(); len(q.mu.packets) >= MaxQueued || held > 0 && held+n > maxQueuedBytes {
		q.mu.Unlock()
		return false
	}
	q.mu.packets = append(q.mu.packets, p)
	q.count(n)
	q.mu.Unlock()
	signal(q.filled)
	q.held.shrink()
	return true
}

// Take returns the next packet, nil if there is none now. more is false after the last one.
func (q *Queue) Take() (p *client.Packet, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.packets) == 0 {
		q.mu.packets = nil
		return nil, !q.mu.ended
	}
	p = q.mu.packets[0]
	q.mu.packets[0], q.mu.packets = nil, q.mu.packets[1:]
	q.count(-sizeOf(p))
	signal(q.room)
	return p, true
}

// Filled signals that the result of Take may have changed.
func (q *Queue) Filled() <-chan struct{} { return q.filled }

// Room signals that the result of Put may have changed.
func (q *Queue) Room() <-chan struct{} { return q.room }

// Finish ends the queue: Put drops packets, Take returns the rest. The taker calls Discard in any case.
func (q *Queue) Finish() {
	q.mu.Lock()
	q.mu.ended = true
	q.mu.Unlock()
	signal(q.filled)
	signal(q.room)
}

// Discard ends the queue and drops the rest.
func (q *Queue) Discard() {
	q.mu.Lock()
	q.mu.ended, q.mu.packets = true, nil
	q.count(-q.bytes.Load())
	q.mu.Unlock()
	signal(q.filled)
	signal(q.room)
	q.held.mu.Lock()
	delete(q.held.mu.queues, q)
	q.held.mu.Unlock()
}

func (q *Queue) count(n int64) {
	q.bytes.Add(n)
	q.held.bytes.Add(n)
}

func sizeOf(p *client.Packet) int64 {
	return int64(overhead + len(p.GetData().GetData()) + len(p.GetCloseResponse().GetError()))
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
