package cluster

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"sync/atomic"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Reference names the controller of an object: the owner whose reference says that it is that.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Owner returns the controller of an entry's object, a zero Reference if it has none.
func Owner(e *watchcache.Entry) Reference {
	raw := watchcache.PartOf(e.Peek(), "metadata", "ownerReferences")
	if raw == nil {
		return Reference{}
	}
	slot := &lastOwners[maphash.Bytes(seed, raw)%uint64(len(lastOwners))]
	if last := slot.Load(); last != nil && bytes.Equal(last.raw, raw) {
		return last.controller
	}
	read := &owners{raw: bytes.Clone(raw)}
	var all []struct {
		Reference
		Controller bool `json:"controller"`
	}
	_ = json.Unmarshal(raw, &all) // what is not of this form has no controller
	for _, o := range all {
		if o.Controller {
			read.controller = o.Reference
			break
		}
	}
	slot.Store(read)
	return read.controller
}

// owners are ownerReferences as they are stored, and what they say.
type owners struct {
	raw        []byte
	controller Reference
}

// lastOwners are those that were read last: the objects of one controller have the same, and each of their changes is
// looked at by many components.
var lastOwners [64]atomic.Pointer[owners]

// NeedOwner names the key "namespace/name" of the controller of an event's object, if that is of a kind; of an object
// that has changed hands both.
func NeedOwner(ev *watchcache.Event, kind string, need func(string)) {
	now := Owner(ev.Entry)
	if now.Kind == kind {
		need(ev.Entry.Namespace + "/" + now.Name)
	}
	if ev.Prev != nil && ev.Prev.Unreadable() == nil {
		if was := Owner(ev.Prev); was.Kind == kind && was != now {
			need(ev.Prev.Namespace + "/" + was.Name)
		}
	}
}
