package watchcache

import "github.com/bowsprit/bowsprit/internal/storage/store"

// Converted returns the object of e in other words: data is its JSON in another version, to be served as it is. What
// selectors look at comes from data; key, revision and creation stay.
func (e *Entry) Converted(data []byte) (*Entry, error) {
	out, err := newEntry(e.key, store.Record{Value: data, Revision: e.Revision, Created: e.Created}, newInterner())
	if err == nil {
		out.converted, out.encoding = true, e.encoding
	}
	return out, err
}

// IsConverted reports whether the entry was made by Converted or NewUnstored: its JSON is not what the store holds, and
// is served as it is.
func (e *Entry) IsConverted() bool { return e.converted }

// At returns the entry with another resourceVersion: what the client of a watch gets of an object that was deleted, or
// left its selector, at rev.
func (e *Entry) At(rev int64) *Entry { return e.at(rev) }

// NewEntry makes an entry of what has just been written to the store under key at revision rev, before the view has
// it. key is the key below the collection's prefix.
func NewEntry(key string, data []byte, rev int64) (*Entry, error) {
	return newEntry(key, store.Record{Value: data, Revision: rev}, newInterner())
}

// WithDocuments returns a new entry with its documents (Entry.Documents). It changes e, which only its maker has.
func (e *Entry) WithDocuments(texts []string) *Entry {
	if texts != nil {
		e.rare = &rare{documents: texts}
	}
	return e
}

// NewUnstored makes an entry of an object that lies nowhere but has just been found out. data is its JSON, to be served
// as it is: there is no revision. namespace is "" for what is in none.
func NewUnstored(namespace, name string, labels map[string]string, data []byte) *Entry {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	return &Entry{key: key, Namespace: namespace, Name: name, Labels: labels, json: data, converted: true}
}

// Size is about the memory that the entry holds, in bytes.
func (e *Entry) Size() int { return e.size() }
