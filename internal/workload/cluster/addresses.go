package cluster

import (
	"net/netip"
	"sync"
)

// podRange is where the addresses of pods come from: 262,142 of them.
var podRange = netip.MustParsePrefix("10.244.0.0/14")

// Addresses are those that pods have. They are safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	last  netip.Addr
	of    map[string]netip.Addr // by the uids of pods
	taken map[netip.Addr]bool
}

// NewAddresses returns Addresses of which none is taken.
func NewAddresses() *Addresses {
	return &Addresses{last: podRange.Addr(), of: map[string]netip.Addr{}, taken: map[netip.Addr]bool{}}
}

// Take notes the address that a pod has, "" for none.
func (a *Addresses) Take(uid, ip string) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || !podRange.Contains(addr) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[uid] != addr {
		a.of[uid], a.taken[addr] = addr, true
	}
}

// Free gives back the address of a pod that is gone.
func (a *Addresses) Free(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, a.of[uid])
	delete(a.of, uid)
}

// Next returns an address for a pod: the one it has been given before, or the next that is free.
func (a *Addresses) Next(uid string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if had, ok := a.of[uid]; ok {
		return had.String()
	}
	for range 1 << (32 - podRange.Bits()) {
		if a.last = a.last.Next(); !podRange.Contains(a.last) {
			a.last = podRange.Addr().Next()
		}
		if !a.taken[a.last] {
			a.of[uid], a.taken[a.last] = a.last, true
			return a.last.String()
		}
	}
	return podRange.Addr().String() // there are more pods than addresses
}
