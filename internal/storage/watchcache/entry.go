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
	Namespace, Name string // from the key; Namespace is "" for a cluster-scoped object
	UID             string
	// APIVersion is the stored version of the object, for example "stable.example.com/v1".
	APIVersion string
	// Revision is the object's resourceVersion; for a deleted object it is the deletion's.
	Revision   int64
	Created    int64 // revision of the creation
	Generation int64
	// Deleting is true if metadata.deletionTimestamp is set.
	Deleting bool
	// converted is true for entries made by Converted and NewUnstored.
	converted bool
	encoding  Encoding
	// Labels is shared with other entries; nil if there are none. Read only.
	Labels map[string]string

	key        string // "namespace/name" or "name"
	json       []byte // nil if compressed is set
	compressed *compressed
	version    struct{ from, to uint32 } // position of the resourceVersion's digits in the JSON
	rare       *rare                     // nil for nearly all entries

	encoded slots
	fields  atomic.Pointer[fieldValue]
	object  atomic.Pointer[any]
}

// rare holds fields that few entries need.
type rare struct {
	unreadable *ReadError
	documents  []string
}

// Encoding is the format of an object in the store. 0 is JSON; Options.Read defines others.
type Encoding uint8

// Encoding returns the format of the object in the store.
func (e *Entry) Encoding() Encoding { return e.encoding }

// Decoded is the result of Options.Read.
type Decoded struct {
	JSON     []byte
	Encoding Encoding
	// Documents are kept with the entry (Entry.Documents).
	Documents []string
}

// Documents returns the original texts of documents within the object, if their text matters and not only their content
// (codec.Documents). It is nearly always nil; e may be nil. The texts are shared: read only.
func (e *Entry) Documents() []string {
	if e == nil || e.rare == nil {
		return nil
	}
	return e.rare.documents
}

// Key returns the key below the collection's prefix: "namespace/name" or "name".
func (e *Entry) Key() string { return e.key }

// JSON returns the object as JSON with sorted keys and its resourceVersion, nil if the entry is unreadable. The bytes
// are shared: read only.
func (e *Entry) JSON() []byte {
	if e.compressed != nil {
		return e.compressed.open(e)
	}
	return e.json
}

// Peek returns JSON without caching the decompressed bytes, for scans.
func (e *Entry) Peek() []byte {
	if e.compressed != nil {
		return e.compressed.peek()
	}
	return e.json
}

// Unmanaged is Peek without managedFields, which are half of many objects. If it removes them, the caller owns the
// result; otherwise the bytes are shared.
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

// Encoded returns the cached result of make for this key, calling make on the first use. Concurrent callers wait for
// it; an error is not cached. The bytes are shared: read only. key is comparable and identifies the encoding, for
// example a struct of version, format and the definition's revision.
func (e *Entry) Encoded(key any, make func() ([]byte, error)) ([]byte, error) {
	return e.encoded.get(key, make)
}

// Cached returns the bytes cached by Encoded for this key, or nil.
func (e *Entry) Cached(key any) []byte { return e.encoded.cached(key) }

// Decoded returns the object of CacheDecoded, or nil. It is also nil once another entry has replaced this one.
func (e *Entry) Decoded() any {
	if obj := e.object.Load(); obj != nil {
		return *obj
	}
	return nil
}

// CacheDecoded caches the decoded object in the form that frequent readers need. The object is shared: read only.
func (e *Entry) CacheDecoded(obj any) { e.object.Store(&obj) }

// newEntry makes an entry from JSON; rest is the key below the collection's prefix. Keys may have any order, and there
// may be whitespace. A value other than an object with metadata is an error.
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

// prepare returns an object's bytes as they are served, except for the resourceVersion, and their layout. It copies
// them only to change them.
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

// WithRevision returns the JSON of an Entry with data and revision rev. data is a stored object or an Entry's bytes; it
// is not changed. If it is not an object, it is returned unchanged.
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

// set sets the entry's bytes and the position of the digits of its resourceVersion.
func (e *Entry) set(json []byte, digits span) {
	e.json, e.version.from, e.version.to = json, uint32(digits.from), uint32(digits.to)
}

// size is about the memory that the entry holds.
func (e *Entry) size() int { return e.length() + 256 }

// length is that of the entry's JSON.
func (e *Entry) length() int {
	if e.compressed != nil {
		return int(e.compressed.size) // the same while it is packed, so that sums stay consistent
	}
	return len(e.json)
}

// trim cuts JSON's whitespace off both ends: kube-apiserver ends stored objects with a newline.
func trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// text decodes the raw content of a JSON string in an entry's bytes. The result may share them, because they are never
// modified.
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
