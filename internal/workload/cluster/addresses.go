package cluster

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// podRange is where the addresses of pods come from: 262,142 of them.
var podRange = netip.MustParsePrefix("10.244.0.0/14")

// Addresses are those that pods have. They are safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	last  uint32                 // within podRange, as all are
	of    map[string]uint32      // by the uids of pods
	taken [podAddresses / 8]byte // a bit for each
}

// podAddresses is how many there are in podRange.
const podAddresses = 1 << 18

// NewAddresses returns Addresses of which none is taken.
func NewAddresses() *Addresses { return &Addresses{of: map[string]uint32{}} }

// Take notes the address that a pod has, "" for none.
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

// Free gives back the address of a pod that is gone.
func (a *Addresses) Free(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.of[uid]; ok {
		a.taken[at/8] &^= 1 << (at % 8)
		delete(a.of, uid)
	}
}

// Next returns an address for a pod: the one it has been given before, or the next that is free.
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
