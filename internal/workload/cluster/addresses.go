package cluster

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// podRange is the range of pod addresses: 262,142 of them.
var podRange = netip.MustParsePrefix("10.244.0.0/14")

// Addresses allocates the addresses of pods. It is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	last  uint32                 // within podRange
	of    map[string]uint32      // by pod uid
	taken [podAddresses / 8]byte // one bit for each address
}

// podAddresses is the number of addresses in podRange.
const podAddresses = 1 << 18

// NewAddresses returns Addresses with all addresses free.
func NewAddresses() *Addresses { return &Addresses{of: map[string]uint32{}} }

// Take records the address that a pod has; "" means none.
func (a *Addresses) Take(uid, ip string) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || !podRange.Contains(addr) {
		return
	}
	four := addr.As4()
	at := binary.BigEndian.Uint32(four[:]) % podAddresses
	a.mu.Lock()
	defer a.mu.Unlock()
	if had, ok := a.of[uid]; !ok || had != at {
		a.give(uid, at)
	}
}

// Free releases the address of a deleted pod.
func (a *Addresses) Free(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.of[uid]; ok {
		a.taken[at/8] &^= 1 << (at % 8)
		delete(a.of, uid)
	}
}

// Next returns the address for a pod: the one that it already has, or the next free one.
func (a *Addresses) Next(uid string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if had, ok := a.of[uid]; ok {
		return podAddress(had)
	}
	for range podAddresses {
		if a.last = (a.last + 1) % podAddresses; a.last == 0 {
			a.last = 1
		}
		if a.taken[a.last/8]&(1<<(a.last%8)) == 0 {
			a.give(uid, a.last)
			return podAddress(a.last)
		}
	}
	return podAddress(0) // there are more pods than addresses
}

func (a *Addresses) give(uid string, at uint32) {
	a.of[uid] = at
	a.taken[at/8] |= 1 << (at % 8)
}

func podAddress(at uint32) string {
	four := podRange.Addr().As4()
	binary.BigEndian.PutUint32(four[:], binary.BigEndian.Uint32(four[:])+at)
	return netip.AddrFrom4(four).String()
}
