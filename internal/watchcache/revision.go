package watchcache

import "github.com/bowsprit/bowsprit/internal/store"

// WithRevision returns the JSON of an object as an Entry of that revision has it: with rev as its resourceVersion. data
// is the object as it is stored, or an Entry's bytes; it is not changed. What is no object comes back as it is.
func WithRevision(data []byte, rev int64) []byte {
	e, err := newEntry("", store.Record{Value: data, Revision: rev}, newInterner())
	if err != nil {
		return data
	}
	return e.json
}
