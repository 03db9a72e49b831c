package watchcache

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Entry is one object as of one revision. It is immutable.
type Entry struct {
	Namespace, Name string // from the key; Namespace is "" for a cluster-wide object
	UID             string
	// APIVersion in which the object is stored, for example "stable.example.com/v1".
	APIVersion string
	// Revision is the object's resourceVersion; of a deleted object, the deletion's.
	Revision   int64
	Created    int64 // revision of the creation
	Generation int64
	// Deleting is true if metadata.deletionTimestamp is set.
	Deleting bool
	// converted is true of what Converted and NewUnstored made.
	converted bool
	encoding  Encoding
	// Labels are shared with other entries; nil if there are none. Read only.
	Labels map[string]string

	key        string // "namespace/name" or "name"
	json       []byte // nil if there is a compressed
	compressed *compressed
	version    struct{ from, to uint32 } // of the digits in the JSON
	rare       *rare                     // nil of nearly all

	encoded slots
	fields  atomic.Pointer[fieldValue]
	object  atomic.Pointer[any]
}

// rare is what few entries have.
type rare struct {
	unreadable *ReadError
	documents  []string
}

// Encoding says how the store keeps an object. 0 is JSON; Options.Read says which others there are.
type Encoding uint8

// Encoding returns how the store keeps the object.
func (e *Entry) Encoding() Encoding { return e.encoding }

// Decoded is what Options.Read makes of a stored value.
type Decoded struct {
	JSON     []byte
	Encoding Encoding
	// Documents are kept with the entry (Entry.Documents).
	Documents []string
}

// Documents returns the texts of the documents of others that the object has within it, if it is not enough to know
// what they say (codec.Documents); nearly always nil, also of no entry. They are shared: read only.
func (e *Entry) Documents() []string {
	if e == nil || e.rare == nil {
		return nil
	}
	return e.rare.documents
}

// Key returns the key below the collection's prefix: "namespace/name" or "name".
func (e *Entry) Key() string { return e.key }

// JSON returns the object as JSON with sorted keys and its resourceVersion, nil if the entry is unreadable. It is
// shared: read only.
func (e *Entry) JSON() []byte {
	if e.compressed != nil {
		return e.compressed.open(e)
	}
	return e.json
}

// Peek is JSON for who looks at many objects once: what lies compressed is not kept in memory because of it.
func (e *Entry) Peek() []byte {
	if e.compressed != nil {
		return e.compressed.peek()
	}
	return e.json
}

// Unmanaged is Peek without managedFields, which are half of many objects. It is the caller's only if it is another.
func (e *Entry) Unmanaged() []byte {
	const key = `"managedFields":`
	data := e.Peek()
	if len(data) == 0 {
		return data
	}
	from := member(data, member(data, 0, "metadata"), "managedFields")
	if from < 0 {
		return data
	}
	end := skip(data, from)
	if from -= len(key); data[end] == ',' {
		end++
	} else if data[from-1] == ',' {
		from--
	}
	return append(append(make([]byte, 0, len(data)-(end-from)), data[:from]...), data[end:]...)
}

// Encoded returns what make returned the first time for this key. Concurrent callers wait for the first; an error is
// not kept. The bytes are shared: read only. key is comparable and names the served form, for example a struct of
// version, format and the definition's revision.
func (e *Entry) Encoded(key any, make func() ([]byte, error)) ([]byte, error) {
	return e.encoded.get(key, make)
}

// Cached returns what Encoded has kept for this key, nil if nothing.
func (e *Entry) Cached(key any) []byte { return e.encoded.known(key) }

// Kept returns what Keep was given last, nil if nothing, or if another object has taken the entry's place since.
func (e *Entry) Kept() any {
	if kept := e.object.Load(); kept != nil {
		return *kept
	}
	return nil
}

// Keep has the entry keep the object as those who look at it often want it. What they get is shared: read only.
func (e *Entry) Keep(obj any) { e.object.Store(&obj) }

// newEntry makes an entry of JSON; rest is the key below the collection's prefix. Keys may have any order, and there
// may be whitespace; what is not an object with metadata is an error.
func newEntry(rest string, r store.Record, in *interner) (*Entry, error) {
	data, l, err := prepare(r.Value)
	if err != nil {
		return nil, err
	}
	e := &Entry{key: rest, Name: rest, Revision: r.Revision, Created: r.Created, Deleting: l.deleting}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		e.Namespace, e.Name = rest[:i], rest[i+1:]
	}
	e.set(splice(data, l, r.Revision))
	grow := len(e.json) - len(data)
	e.UID = text(l.uid.shift(l.version.to, grow).of(e.json))
	e.APIVersion = in.text(l.apiVersion.of(data))
	e.Labels = in.labels(l.labels.of(data))
	e.Generation, _ = strconv.ParseInt(string(l.generation.of(data)), 10, 64)
	return e, nil
}

// prepare returns an object's bytes in the form that is served but for the resourceVersion, and their layout. They are
// copied only if they must change.
func prepare(data []byte) ([]byte, layout, error) {
	data = trim(data)
	l, err := scan(data)
	if err == nil && l.metadata && !l.canonical {
		if data, err = normalize(data); err == nil {
			l, err = scan(data)
		}
	}
	if err == nil && !l.metadata {
		err = errNoMetadata
	}
	return data, l, err
}

// splice returns a copy of data with rev as its resourceVersion, and where rev's digits are.
func splice(data []byte, l layout, rev int64) (out []byte, at span) {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], rev, 10)
	out = make([]byte, 0, len(data)-(l.version.to-l.version.from)+len(l.before)+len(digits)+len(`""`)+len(l.after))
	out = append(out, data[:l.version.from]...)
	out = append(out, l.before...)
	out = append(out, '"')
	at = span{len(out), len(out) + len(digits)}
	out = append(out, digits...)
	out = append(out, '"')
	out = append(out, l.after...)
	return append(out, data[l.version.to:]...), at
}

// WithRevision returns the JSON that an Entry of revision rev would have for data: with rev as its resourceVersion.
// data is an object as it is stored, or an Entry's bytes; it is not changed. What is no object comes back as it is.
func WithRevision(data []byte, rev int64) []byte {
	clean, l, err := prepare(data)
	if err != nil {
		return data
	}
	out, _ := splice(clean, l, rev)
	return out
}

// at returns the entry with another resourceVersion: the last state of an object that was deleted at rev.
func (e *Entry) at(rev int64) *Entry {
	out := &Entry{
		Namespace: e.Namespace, Name: e.Name, APIVersion: e.APIVersion, Revision: rev, Created: e.Created,
		Generation: e.Generation, Deleting: e.Deleting, Labels: e.Labels, key: e.key, UID: e.UID,
		converted: e.converted, rare: e.rare, encoding: e.encoding,
	}
	if e.Unreadable() != nil {
		return out
	}
	quoted := span{int(e.version.from) - 1, int(e.version.to) + 1}
	out.set(splice(e.Peek(), layout{version: quoted}, rev))
	return out
}

// set gives the entry its bytes, and says where in them the digits of its resourceVersion are.
func (e *Entry) set(json []byte, digits span) {
	e.json, e.version.from, e.version.to = json, uint32(digits.from), uint32(digits.to)
}

// size is about the memory that the entry holds.
func (e *Entry) size() int { return e.length() + 256 }

// length is that of the entry's JSON.
func (e *Entry) length() int {
	if e.compressed != nil {
		return int(e.compressed.size) // also while it is packed: what is counted once must be counted alike
	}
	return len(e.json)
}

// trim cuts JSON's whitespace off both ends: kube-apiserver ends stored objects with a newline.
func trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// text returns the meaning of the raw content of a JSON string that lies in an entry's bytes. Those are never modified,
// so the string may share them.
func text(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	for _, c := range raw {
		if c == '\\' {
			return unquote(raw)
		}
	}
	return unsafe.String(&raw[0], len(raw))
}
