package konnectivity

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

const (
	// MaxPosted bounds the packets that wait in an Outbox. A packet of them has 2 KiB of text at most.
	MaxPosted = 2048
	// SendLimit is how long a peer may take for one packet. Upstream's agents, and ours, stop reading for 30 seconds
	// while a connection of theirs stalls; upstream's halves wait for ever.
	SendLimit = 2 * time.Minute
)

// The reasons for dropping a peer.
var (
	ErrPeerFull  = errors.New("the peer sends packets that need an answer and does not read the answers")
	ErrPeerStall = errors.New("the peer has read nothing for two minutes")
	ErrGone      = errors.New("the peer has gone")
)

// Outbox sends packets to one peer, one at a time. DATA waits for its turn, so that a peer that reads slowly slows down
// its senders. Packets that answer the peer are posted: they wait in a bounded queue and never hold up the goroutine
// that receives from the peer, because the peer may wait for that goroutine before it reads.
//
// An Outbox is safe for concurrent use. Run is its only goroutine.
type Outbox struct {
	send func(*client.Packet) error
	done <-chan struct{} // closed when the peer has gone
	turn chan struct{}   // capacity 1: the right to call send
	wake chan struct{}   // capacity 1: one wake-up covers several posts

	late *time.Timer // fires when one send takes too long; the holder of turn resets it

	mu struct {
		sync.Mutex
		posted  []*client.Packet
		closing map[int64]bool // the connections with a posted packet that closes them
	}
}

// NewOutbox returns an outbox that calls send until done is closed. It calls stalled if the peer takes nothing for
// SendLimit.
func NewOutbox(send func(*client.Packet) error, done <-chan struct{}, stalled func()) *Outbox {
	o := &Outbox{send: send, done: done, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	o.late = time.AfterFunc(SendLimit, stalled)
	o.late.Stop()
	o.mu.closing = map[int64]bool{}
	return o
}

// Run sends the posted packets, until the peer has gone.
func (o *Outbox) Run() {
	for {
		select {
		case <-o.wake:
		case <-o.done:
			return
		}
		if o.acquire(context.Background()) != nil {
			return
		}
		err := o.flush()
		<-o.turn
		if err != nil {
			return
		}
	}
}

// Send sends a packet after the posted ones. It blocks while the peer does not read; ctx bounds only the wait for a
// turn. The packet may be reused once Send has returned.
func (o *Outbox) Send(ctx context.Context, p *client.Packet) error {
	if err := o.acquire(ctx); err != nil {
		return err
	}
	defer func() { <-o.turn }()
	if err := o.flush(); err != nil {
		return err
	}
	return o.timed(p)
}

// Post queues a packet and does not wait. It reports false, and drops the packet, if MaxPosted packets wait. A second
// packet that closes the same connection is not queued beside the first.
func (o *Outbox) Post(p *client.Packet) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, closes := closed(p)
	if closes && o.mu.closing[id] {
		return true
	}
	if len(o.mu.posted) >= MaxPosted {
		return false
	}
	o.mu.posted = append(o.mu.posted, p)
	if closes {
		o.mu.closing[id] = true
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// Posted returns the number of packets that wait.
func (o *Outbox) Posted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.posted)
}

func (o *Outbox) acquire(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-o.done:
		return ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flush sends the posted packets. The caller has the turn.
func (o *Outbox) flush() error {
	for {
		o.mu.Lock()
		if len(o.mu.posted) == 0 {
			o.mu.posted = nil // frees the memory of a burst
			o.mu.Unlock()
			return nil
		}
		p := o.mu.posted[0]
		o.mu.posted[0], o.mu.posted = nil, o.mu.posted[1:]
		if id, closes := closed(p); closes {
			delete(o.mu.closing, id)
		}
		o.mu.Unlock()
		if err := o.timed(p); err != nil {
			return err
		}
	}
}

// timed sends one packet. The caller has the turn.
func (o *Outbox) timed(p *client.Packet) error {
	o.late.Reset(SendLimit)
	defer o.late.Stop()
	return o.send(p)
}

// closed returns the connection that a packet closes.
func closed(p *client.Packet) (id int64, ok bool) {
	switch p.Type {
	case client.PacketType_CLOSE_REQ:
		return p.GetCloseRequest().GetConnectID(), true
	case client.PacketType_CLOSE_RSP:
		return p.GetCloseResponse().GetConnectID(), true
	}
	return 0, false
}
