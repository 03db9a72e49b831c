package cluster

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Reference identifies the controller of an object: the owner reference with controller set.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Owner returns the controller of an entry's object, a zero Reference if it has none.
func Owner(e *watchcache.Entry) Reference {
	return ownersOf(watchcache.PartOf(e.Peek(), "metadata", "ownerReferences")).controller
}

// owners are ownerReferences as stored, and decoded.
type owners struct {
	raw        []byte
	all        []metav1.OwnerReference
	controller Reference
	err        error
}

// lastOwners caches recently decoded owners. The objects of one controller have equal ownerReferences, and many
// components look at each of their changes.
var (
	lastOwners [64]atomic.Pointer[owners]
	noOwners   owners
)

// ownersOf decodes ownerReferences; nil if raw is nil. The result is shared and must not be modified.
func ownersOf(raw []byte) *owners {
	if raw == nil {
		return &noOwners
	}
	slot := &lastOwners[maphash.Bytes(seed, raw)%uint64(len(lastOwners))]
	if last := slot.Load(); last != nil && bytes.Equal(last.raw, raw) {
		return last
	}
	read := &owners{raw: bytes.Clone(raw)}
	read.err = json.Unmarshal(raw, &read.all)
	for _, o := range read.all {
		if o.Controller != nil && *o.Controller {
			read.controller = Reference{o.APIVersion, o.Kind, o.Name, string(o.UID)}
			break
		}
	}
	slot.Store(read)
	return read
}

// NeedOwner requests the key "namespace/name" of the controller of an event's object, if the controller is of the given
// kind. If the controller has changed, it requests both keys.
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
