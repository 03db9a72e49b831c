package watchcache

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// ReadError is the reason why an entry is unreadable: its stored value cannot be decrypted, or is not an object.
type ReadError struct {
	// Key is the key in the store, below the store's prefix.
	Key string
	// Undecodable is true if the value is decrypted, or was never encrypted, but is not an object. Otherwise decryption
	// failed.
	Undecodable bool
	Err         error

	last *Entry // the last readable state; nil if unknown
}

// Error returns the key and the cause.
func (e *ReadError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Unreadable returns the reason why the entry is unreadable; nil for nearly all. An unreadable entry exists: it has a
// key and a revision, and, if an earlier state is known, a uid and a version. It has no JSON. Reads of it must fail,
// and its dependents must stay.
func (e *Entry) Unreadable() *ReadError {
	if e.rare == nil {
		return nil
	}
	return e.rare.unreadable
}

// entry returns the entry for a record below a collection's prefix; rest is its key there. It returns nil if the value
// is unreadable and the key is not an object's.
func (v *View) entry(prefix, rest string, r store.Record, in *interner) *Entry {
	err := &ReadError{Key: r.Key}
	if v.decrypt != nil {
		if r.Value, err.Err = v.decrypt(prefix, r.Key, r.Value); err.Err != nil {
			return v.unreadable(prefix, rest, r, err)
		}
	}
	err.Undecodable = true
	decoded := Decoded{JSON: r.Value}
	if v.read != nil {
		if decoded, err.Err = v.read(prefix, r.Value); err.Err != nil {
			return v.unreadable(prefix, rest, r, err)
		}
	}
	r.Value = decoded.JSON
	e, why := newEntry(rest, r, in)
	if why != nil {
		err.Err = why
		return v.unreadable(prefix, rest, r, err)
	}
	e.encoding = decoded.Encoding
	if decoded.Documents != nil {
		e.rare = &rare{documents: decoded.Documents}
	}
	return e
}

func (v *View) unreadable(prefix, rest string, r store.Record, err *ReadError) *Entry {
	if v.foreign != nil && v.foreign(prefix) {
		v.log.Debug("value in the store does not belong to a served object", "key", r.Key)
		return nil
	}
	e := &Entry{key: rest, Name: rest, Revision: r.Revision, Created: r.Created, rare: &rare{unreadable: err}}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		e.Namespace, e.Name = rest[:i], rest[i+1:]
	}
	return e
}

// LastReadable returns e if it is readable, otherwise the last readable state of the object, or nil if that is unknown.
// It serves readers that must continue with the last known state, as clients with a cache do.
func (e *Entry) LastReadable() *Entry {
	if e == nil || e.Unreadable() == nil {
		return e
	}
	return e.rare.unreadable.last
}

// inherit copies known facts about the object of an unreadable entry from its previous state.
func (e *Entry) inherit(prev *Entry) {
	if last := prev.LastReadable(); e.Unreadable() != nil && last != nil && last.Created == e.Created {
		e.rare.unreadable.last = last
		e.UID, e.APIVersion = strings.Clone(last.UID), last.APIVersion
	}
}

// Readable returns the event for subscribers that depend on readable objects. For an object that becomes unreadable it
// returns nil, so that its last state stays. For the deletion of an object that was never readable, only the key is
// known.
func (ev *Event) Readable() *Event {
	if ev.Entry.Unreadable() != nil && ev.Type != Deleted {
		return nil
	}
	if ev.Prev == nil || ev.Prev.Unreadable() == nil {
		return ev
	}
	last := ev.Prev.LastReadable()
	out := &Event{
		Type: ev.Type, Revision: ev.Revision, Entry: ev.Entry, Prev: last, Collection: ev.Collection,
		sequence: ev.sequence, at: ev.at,
	}
	switch {
	case last == nil && ev.Type == Deleted:
		out.Prev = ev.Prev
	case last == nil:
		out.Type = Added
	case ev.Type == Deleted:
		out.Entry = last.at(ev.Revision)
	}
	return out
}

// warn logs that an entry has become unreadable.
func (v *View) warn(err *ReadError) {
	v.log.Warn("object in the store cannot be read; reads of it fail, and its dependents stay, until it can be "+
		"read or is deleted", "key", err.Key, "error", err.Err)
}

// warnAll logs the unreadable objects of the collection, in one line.
func (v *View) warnAll(c *Collection) {
	s := c.Snapshot()
	if s.Unreadable() == 0 {
		return
	}
	first := s.FirstUnreadable("", "", 1)[0].Unreadable()
	v.log.Warn("objects in the store cannot be read; reads of them fail, and their dependents stay, until they "+
		"can be read or are deleted", "collection", c.prefix, "objects", s.Unreadable(), "first", first.Key,
		"error", first.Err)
}

// Unreadable returns the number of unreadable objects, a stored count.
func (s *Snapshot) Unreadable() int { return s.unreadable }

// FirstUnreadable returns at most limit unreadable objects in the range of Scan.
func (s *Snapshot) FirstUnreadable(namespace, after string, limit int) (found []*Entry) {
	if s.unreadable == 0 {
		return nil
	}
	s.Scan(namespace, after, func(e *Entry) bool {
		if e.Unreadable() != nil {
			found = append(found, e)
		}
		return len(found) < limit
	})
	return found
}

// unread returns 1 if the entry is unreadable, otherwise 0. e may be nil.
func (e *Entry) unread() int {
	if e == nil || e.Unreadable() == nil {
		return 0
	}
	return 1
}
