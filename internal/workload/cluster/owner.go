package cluster

import (
	"encoding/json"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Reference names the controller of an object: the owner whose reference says that it is that.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// ownerKey is what an entry keeps its controller under.
type ownerKey struct{}

// Owner returns the controller of an entry's object, a zero Reference if it has none. It is found once for each entry.
func Owner(e *watchcache.Entry) (ref Reference) {
	if e.Unreadable() != nil {
		return ref
	}
	data, err := e.Encoded(ownerKey{}, func() ([]byte, error) { return owner(e) })
	if err == nil && len(data) > 0 {
		_ = json.Unmarshal(data, &ref) // it was made by Marshal
	}
	return ref
}

func owner(e *watchcache.Entry) ([]byte, error) {
	raw, err := codec.Field(e.Peek(), "metadata")
	if err != nil {
		return nil, err
	}
	if raw, err = codec.Field(raw, "ownerReferences"); err != nil || raw == nil {
		return []byte{}, err
	}
	var all []struct {
		Reference
		Controller bool `json:"controller"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.Controller {
			return json.Marshal(o.Reference)
		}
	}
	return []byte{}, nil
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
