package cluster

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	return ownersOf(watchcache.PartOf(e.Peek(), "metadata", "ownerReferences")).controller
}

// owners are ownerReferences as they are stored, and what they say.
type owners struct {
	raw        []byte
	all        []metav1.OwnerReference
	controller Reference
	err        error
}

// lastOwners are those that were read last: the objects of one controller have the same, and each of their changes is
// looked at by many components.
var (
	lastOwners [64]atomic.Pointer[owners]
	noOwners   owners
)

// ownersOf reads ownerReferences, nil for none. What it returns is shared: read only.
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
