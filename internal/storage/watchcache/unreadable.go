package watchcache

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// ReadError is why an entry cannot be read: its stored value cannot be decrypted, or what it holds is no object.
type ReadError struct {
	// Key is the key in the store, below the store's prefix.
	Key string
	// Undecodable is true if the value was decrypted, or is not encrypted, and is no object; else decryption failed.
	Undecodable bool
	Err         error

	last *Entry // the last state that could be read; nil if it is not known
}

// Error returns what went wrong, and where.
func (e *ReadError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *ReadError) Unwrap() error { return e.Err }

// Unreadable returns why the entry cannot be read, nil if it can, as nearly all. An entry that is unreadable is there:
// it has a key and a revision, and a uid and a version if they are known of an earlier state. It has no JSON. Reads of
// it must fail, and what depends on it must stay.
func (e *Entry) Unreadable() *ReadError {
	if e.rare == nil {
		return nil
	}
	return e.rare.unreadable
}

// entry makes an entry of what the store holds below a collection's prefix; rest is the key there. nil if the value is
// unreadable and not an object's.
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
		v.log.Debug("value in the store is not that of an object that is served", "key", r.Key)
		return nil
	}
	e := &Entry{key: rest, Name: rest, Revision: r.Revision, Created: r.Created, rare: &rare{unreadable: err}}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		e.Namespace, e.Name = rest[:i], rest[i+1:]
	}
	return e
}

// LastReadable returns the entry itself if it can be read, else the last state of the object that could, nil if it is
// not known. It is for those who must go on with what they know, as clients with a cache do.
func (e *Entry) LastReadable() *Entry {
	if e == nil || e.Unreadable() == nil {
		return e
	}
	return e.rare.unreadable.last
}

// inherit notes of an unreadable entry what is known of the object from the state before it.
func (e *Entry) inherit(prev *Entry) {
	if last := prev.LastReadable(); e.Unreadable() != nil && last != nil && last.Created == e.Created {
		e.rare.unreadable.last = last
		e.UID, e.APIVersion = strings.Clone(last.UID), last.APIVersion
	}
}

// Readable returns the event as it is to those who go by what can be read: an object that becomes unreadable stays what
// it was to them, which is nil. Of what was never readable, nothing is known but the key when it goes.
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

// warn says that an entry has become unreadable.
func (v *View) warn(err *ReadError) {
	v.log.Warn("object in the store cannot be read; reads of it fail, and what depends on it stays, until it can be "+
		"read or is deleted", "key", err.Key, "error", err.Err)
}

// warnAll says so of all objects of the collection, in one line.
func (v *View) warnAll(c *Collection) {
	s := c.Snapshot()
	if s.Unreadable() == 0 {
		return
	}
	first := s.FirstUnreadable("", "", 1)[0].Unreadable()
	v.log.Warn("objects in the store cannot be read; reads of them fail, and what depends on them stays, until they "+
		"can be read or are deleted", "collection", c.prefix, "objects", s.Unreadable(), "first", first.Key,
		"error", first.Err)
}

// Unreadable returns how many of the objects are unreadable. It costs nothing.
func (s *Snapshot) Unreadable() int { return s.unreadable }

// FirstUnreadable returns the unreadable objects among those that Scan would visit, limit of them at most.
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

// unread counts the entry if it is unreadable. e may be nil.
func (e *Entry) unread() int {
	if e == nil || e.Unreadable() == nil {
		return 0
	}
	return 1
}
