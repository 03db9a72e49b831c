package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/admit/source"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Lookup returns an object that others refer to by name, nil if there is none. namespace is "" for cluster-wide ones.
func Lookup[T any](ctx context.Context, view *watchcache.View, prefix, namespace, name string) (*T, error) {
	c := view.Collection(prefix)
	e := c.Snapshot().Get(namespace, name)
	if e == nil {
		if _, err := view.Fresh(ctx); err != nil {
			return nil, err
		}
		if e = c.Snapshot().Get(namespace, name); e == nil {
			return nil, nil
		}
	}
	return Decode[T](e)
}

// Decode returns the object of an entry as its Go type.
func Decode[T any](e *watchcache.Entry) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(e.JSON(), out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.Key(), err)
	}
	return out, nil
}

// DefaultClass knows which class of a kind objects get that name none: of those with one of the annotations the
// newest, and of several that are as new the first by name.
type DefaultClass struct {
	marked *source.Source[candidate]
	chosen source.Derived[candidate, string]
}

// candidate is a class that says that it is the default.
type candidate struct {
	name    string
	created string // RFC 3339, UTC: it sorts as time does
}

// NewDefaultClass returns the default of the objects under prefix. marks are paths of annotations, of which one must
// be "true".
func NewDefaultClass(view *watchcache.View, prefix string, marks ...string) *DefaultClass {
	return &DefaultClass{marked: source.New(view.Collection(prefix), func(e *watchcache.Entry) (candidate, bool) {
		for _, path := range marks {
			if v, _ := e.Field(path); v == "true" {
				created, _ := e.Field("metadata.creationTimestamp")
				return candidate{e.Name, created}, true
			}
		}
		return candidate{}, false
	})}
}

// Name returns the default's name, "" if there is none.
func (d *DefaultClass) Name() string {
	return d.chosen.Get(d.marked.List(), func(all []candidate) string {
		var best candidate
		for _, c := range all { // in the order of their names
			if best.name == "" || c.created > best.created {
				best = c
			}
		}
		return best.name
	})
}
