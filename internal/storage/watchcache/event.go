package watchcache

// EventType is the kind of a change.
type EventType uint8

// The kinds of changes of an object: created, changed, deleted.
const (
	Added EventType = iota
	Modified
	Deleted
)

// String returns the type as watches write it: "ADDED", "MODIFIED", "DELETED".
func (t EventType) String() string {
	return [...]string{"ADDED", "MODIFIED", "DELETED"}[t]
}

// Event is one change of one object. It is immutable and shared by all watchers.
type Event struct {
	Type     EventType
	Revision int64
	// Entry is the object after the change; for a deletion, its last state with the deletion's resourceVersion.
	Entry *Entry
	// Prev is the object before the change; nil if it was added.
	Prev *Entry
	// Collection is where it happened.
	Collection *Collection

	sequence uint64 // position in the collection's history
	at       int64  // time at which the view received it, Unix nanoseconds
	encoded  slots
}

// Encoded is like Entry.Encoded, for frames of a watch.
func (e *Event) Encoded(key any, make func() ([]byte, error)) ([]byte, error) {
	return e.encoded.get(key, make)
}

// Cached is like Entry.Cached.
func (e *Event) Cached(key any) []byte { return e.encoded.cached(key) }

// size estimates the memory that the event holds in the history, without the previous state, which usually belongs to
// the previous event.
func (e *Event) size() int { return e.Entry.size() + 96 }
