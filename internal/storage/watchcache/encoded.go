package watchcache

import (
	"sync"
	"sync/atomic"
)

// slotLimit bounds the cached encodings of one entry or event. Beyond it all are dropped: they belong to old
// definitions.
const slotLimit = 8

// slots caches encodings. The zero value is ready and takes one word.
type slots struct{ head atomic.Pointer[slot] }

type slot struct {
	key  any
	next *slot
	left int // number of slots that may still be added before it

	mu   sync.Mutex
	data atomic.Pointer[[]byte]
}

func (s *slots) cached(key any) []byte {
	for at := s.head.Load(); at != nil; at = at.next {
		if at.key == key {
			if data := at.data.Load(); data != nil {
				return *data
			}
			return nil
		}
	}
	return nil
}

func (s *slots) get(key any, make func() ([]byte, error)) ([]byte, error) {
	at := s.find(key)
	if data := at.data.Load(); data != nil {
		return *data, nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if data := at.data.Load(); data != nil {
		return *data, nil
	}
	data, err := make()
	if err != nil {
		return nil, err
	}
	at.data.Store(&data)
	return data, nil
}

// find returns the slot of key, creating it if necessary.
func (s *slots) find(key any) *slot {
	for {
		head := s.head.Load()
		for at := head; at != nil; at = at.next {
			if at.key == key {
				return at
			}
		}
		fresh := &slot{key: key, next: head, left: slotLimit - 1}
		if head != nil {
			fresh.left = head.left - 1
		}
		if fresh.left < 0 {
			fresh.next, fresh.left = nil, slotLimit-1
		}
		if s.head.CompareAndSwap(head, fresh) {
			return fresh
		}
	}
}

func (s *slots) forget() { s.head.Store(nil) }
