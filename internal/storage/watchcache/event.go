package watchcache

// EventType tells what happened to an object.
type EventType uint8

// What happened to an object: it is there for the first time, has changed, or is gone.
const (
	Added EventType = iota
	Modified
	Deleted
)

// String returns the type as it is written in a watch: "ADDED", "MODIFIED", "DELETED".
func (t EventType) String() string {
	return [...]string{"ADDED", "MODIFIED", "DELETED"}[t]
}

// Event is one change of one object. It is immutable and shared by all who watch.
type Event struct {
	Type     EventType
	Revision int64
	// Entry is the object after the change; if it was deleted, its last state with the deletion's resourceVersion.
	Entry *Entry
	// Prev is the object before the change; nil if it was added.
	Prev *Entry
	// Collection is where it happened.
	Collection *Collection

	sequence uint64 // position in the collection's history
	at       int64  // when the view saw it, Unix nanoseconds
	encoded  slots
}

// Encoded is like Entry.Encoded, for frames of a watch.
func (e *Event) Encoded(key any, make func() ([]byte, error)) ([]byte, error) {
	return e.encoded.get(key, make)
}

// Cached is like Entry.Cached.
func (e *Event) Cached(key any) []byte { return e.encoded.known(key) }

// size is about the memory that history holds for the event: the state before is the event before's, or is counted here
// if there was none.
func (e *Event) size() int { return e.Entry.size() + 96 }
