package convert

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// recent caches the JSON of recently encoded values, so that a server's own writes need no decoding when they return
// from the store. A value is dropped when it is taken, or when another needs its slot; a failed write leaves it until
// then.
type recent struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex
		values [recentValues]recentValue // indexed by the hash of stored
	}
}

type recentValue struct {
	stored, json []byte
	documents    []string
}

// Bounds on the number and size of cached values: at most 12 MB, and more than are in progress at a time.
const (
	recentValues = 256
	recentBytes  = 48 << 10
)

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// keep caches an encoded value and its source. Neither may change afterwards.
func (r *recent) keep(stored, json []byte, documents []string) {
	if len(stored)+len(json) > recentBytes {
		return
	}
	at := r.at(stored)
	r.mu.Lock()
	r.mu.values[at] = recentValue{stored, json, documents}
	r.mu.Unlock()
}

// take returns the source of an encoded value; JSON is nil if it is not cached.
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
