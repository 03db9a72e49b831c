package convert

import (
	"sync"
	"unique"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// cacheKey identifies one state of an object in one version under one definition.
type cacheKey struct {
	object   string // uid, or the key of objects without one
	revision int64
	shape    unique.Handle[shape]
}

// shape is the target of a conversion. A definition's generation changes with its spec, so a new schema or webhook
// makes all earlier results unreachable.
type shape struct {
	version    string
	definition string // uid
	generation int64
}

// cache holds converted objects up to a number of bytes, and the conversions in progress.
//
// When it is full, it evicts at random. Recent use predicts nothing here: lists read all objects of a kind in turn, and
// for a kind larger than the cache, evicting the oldest would keep none.
type cache struct {
	limit int

	mu struct {
		sync.Mutex
		entries map[cacheKey]*watchcache.Entry
		bytes   int
		flights map[cacheKey]*flight
	}
}

// flight is a conversion under way. entry and err are written before done is closed.
type flight struct {
	done  chan struct{}
	entry *watchcache.Entry
	err   error
	// abandoned is true if the owning caller left before the end: waiters must retry themselves.
	abandoned bool
	// alone is true if the call carried only this object, so that an error is about it.
	alone bool
}

func newCache(limit int) *cache {
	c := &cache{limit: limit}
	c.mu.entries, c.mu.flights = map[cacheKey]*watchcache.Entry{}, map[cacheKey]*flight{}
	return c
}

// claim looks up the results for the jobs. A job without a result gets a flight: either that of another caller, or a
// new one that it must fly and land.
func (c *cache) claim(jobs []*job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range jobs {
		j.flight, j.mine = nil, false
		if j.found = c.mu.entries[j.key]; j.found != nil {
			continue
		}
		if j.flight = c.mu.flights[j.key]; j.flight == nil {
			j.flight, j.mine = &flight{done: make(chan struct{})}, true
			c.mu.flights[j.key] = j.flight
		}
	}
}

// land ends a flight after set has stored its result. A flight lands once; later calls do nothing.
func (c *cache) land(key cacheKey, f *flight, set func(*flight)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.flights[key] != f {
		return
	}
	delete(c.mu.flights, key)
	set(f)
	if f.entry != nil {
		c.putLocked(key, f.entry)
	}
	close(f.done)
}

// cost estimates the memory of an entry in the cache.
func cost(e *watchcache.Entry) int { return e.Size() + 160 }

func (c *cache) putLocked(key cacheKey, e *watchcache.Entry) {
	if cost(e) > c.limit/8 {
		return // too large: it would evict too many others
	}
	if old := c.mu.entries[key]; old != nil {
		c.mu.bytes -= cost(old)
	}
	c.mu.entries[key] = e
	c.mu.bytes += cost(e)
	for victim, e := range c.mu.entries { // Go's order is random
		if c.mu.bytes <= c.limit {
			return
		}
		c.mu.bytes -= cost(e)
		delete(c.mu.entries, victim)
	}
}

func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.bytes
}
