package convert

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// recent knows the JSON of values that have just been encoded, so that what this server writes comes back from the
// store without being decoded. It forgets a value when it is asked for it, or when another needs its room; a write that
// failed leaves it until then.
type recent struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex
		values [recentValues]recentValue // by the hash of stored
	}
}

type recentValue struct {
	stored, json []byte
	documents    []string
}

// At most so many values are known, of so many bytes each: at the most 12 MB, and more than are under way at a time.
const (
	recentValues = 256
	recentBytes  = 48 << 10
)

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// keep notes what was encoded, and from what. Nothing of it is changed from here on.
func (r *recent) keep(stored, json []byte, documents []string) {
	if len(stored)+len(json) > recentBytes {
		return
	}
	at := r.at(stored)
	r.mu.Lock()
	r.mu.values[at] = recentValue{stored, json, documents}
	r.mu.Unlock()
}

// take returns what a value was encoded from; JSON is nil if it is not known.
func (r *recent) take(stored []byte) (json []byte, documents []string) {
	if r == nil || len(stored) > recentBytes {
		return nil, nil
	}
	at := r.at(stored)
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.mu.values[at]
	if !bytes.Equal(v.stored, stored) {
		return nil, nil
	}
	r.mu.values[at] = recentValue{}
	return v.json, v.documents
}

func (r *recent) at(stored []byte) uint64 { return maphash.Bytes(r.seed, stored) % recentValues }
