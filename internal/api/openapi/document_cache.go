package openapi

import (
	"container/list"
	"strings"
	"sync"
)

// documentCache caches compressed documents up to a limit. The key contains the document's hash, so no entry is ever
// stale; unused entries are evicted by age.
type documentCache struct {
	limit int

	mu    sync.Mutex
	size  int
	byKey map[key]*list.Element
	order list.List // of *entry, most recently used first
}

type key struct {
	name string // "v3 apis/apps/v1", "v2 apps"
	form string // "json" or "protobuf"
	hash string
}

func (k key) edition() string {
	edition, _, _ := strings.Cut(k.name, " ")
	return edition
}

type entry struct {
	key    key
	packed []byte
}

// get returns the compressed document of k, or nil.
func (c *documentCache) get(k key) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).packed
}

// put caches packed if it is small enough. It evicts older documents; during a scan only those of other kinds and
// forms, because a client that reads all parts of v2 in a row would otherwise evict each before its next use.
func (c *documentCache) put(k key, packed []byte, scan bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(packed) > c.limit/2 || c.byKey[k] != nil {
		return
	}
	// The document with another hash under the same name is outdated and unlikely to be requested again.
	for e := c.order.Front(); e != nil; e = e.Next() {
		if old := e.Value.(*entry).key; old.name == k.name && old.form == k.form {
			c.removeLocked(e)
			break
		}
	}
	for c.size+len(packed) > c.limit {
		oldest := c.order.Back()
		if old := oldest.Value.(*entry).key; scan && old.edition() == k.edition() && old.form == k.form {
			return
		}
		c.removeLocked(oldest)
	}
	if c.byKey == nil {
		c.byKey = map[key]*list.Element{}
	}
	c.byKey[k] = c.order.PushFront(&entry{k, packed})
	c.size += len(packed)
}

func (c *documentCache) removeLocked(e *list.Element) {
	old := c.order.Remove(e).(*entry)
	delete(c.byKey, old.key)
	c.size -= len(old.packed)
}

func (c *documentCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.byKey = 0, nil
	c.order.Init()
}
