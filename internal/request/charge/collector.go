package charge

import (
	"runtime/debug"
	"sync"
)

// eagerPercent is the garbage collector's target (GOGC) while large requests are under way. With the default, 100, the
// heap grows to twice the memory in use, and the decoding of a large body leaves much garbage.
const eagerPercent = 25

// collector is the garbage collector of the process, which all ledgers in it share.
var collector eagerness

// eagerness counts the ledgers with large requests.
type eagerness struct {
	mu      sync.Mutex
	ledgers int
	normal  int // GOGC before
}

// begin makes the collector eager, until end has been called as often.
func (c *eagerness) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledgers++; c.ledgers == 1 {
		if c.normal = debug.SetGCPercent(eagerPercent); c.normal < eagerPercent { // negative if it is off
			debug.SetGCPercent(c.normal)
		}
	}
}

func (c *eagerness) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledgers--; c.ledgers == 0 {
		debug.SetGCPercent(c.normal)
	}
}
