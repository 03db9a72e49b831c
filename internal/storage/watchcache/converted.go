package watchcache

import "github.com/bowsprit/bowsprit/internal/storage/store"

// Converted returns the entry of e's object in another version; data is its JSON and is served unchanged. The fields
// for selectors come from data; key, revision and creation stay.
func (e *Entry) Converted(data []byte) (*Entry, error) {
	out, err := newEntry(e.key, store.Record{Value: data, Revision: e.Revision, Created: e.Created}, newInterner())
	if err == nil {
		out.converted, out.encoding = true, e.encoding
	}
	return out, err
}

// IsConverted reports whether the entry was made by Converted or NewUnstored: its JSON differs from the store's and is
// served unchanged.
func (e *Entry) IsConverted() bool { return e.converted }

// At returns the entry with another resourceVersion, for a watch event about an object that was deleted, or left its
// selector, at rev.
func (e *Entry) At(rev int64) *Entry { return e.at(rev) }

// NewEntry returns an entry for an object just written to the store under key at revision rev, before the view has it.
// key is relative to the collection's prefix.
func NewEntry(key string, data []byte, rev int64) (*Entry, error) {
	return newEntry(key, store.Record{Value: data, Revision: rev}, newInterner())
}

// WithDocuments sets the documents of a new entry (Entry.Documents) and returns e. Only its creator may call it.
func (e *Entry) WithDocuments(texts []string) *Entry {
	if texts != nil {
		e.rare = &rare{documents: texts}
	}
	return e
}

// NewUnstored returns an entry for a computed object without a revision. data is its JSON and is served unchanged.
// namespace is "" for a cluster-scoped object.
func NewUnstored(namespace, name string, labels map[string]string, data []byte) *Entry {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	return &Entry{key: key, Namespace: namespace, Name: name, Labels: labels, json: data, converted: true}
}

// Size is about the memory that the entry holds, in bytes.
func (e *Entry) Size() int { return e.size() }
