package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/admit/source"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// lookup returns an object that others refer to by name, nil if there is none. namespace is "" for cluster-wide ones.
func lookup[T any](ctx context.Context, view *watchcache.View, prefix, namespace, name string) (*T, error) {
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
	return decode[T](e)
}

func decode[T any](e *watchcache.Entry) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(e.JSON(), out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.Key(), err)
	}
	return out, nil
}

// defaultClass knows which class of a kind objects get that name none: of those with one of the annotations the
// newest, and of several that are as new the first by name.
type defaultClass struct {
	marked *source.Source[candidate]
	chosen source.Derived[candidate, string]
}

// candidate is a class that says that it is the default.
type candidate struct {
	name    string
	created string // RFC 3339, UTC: it sorts as time does
}

// newDefaultClass returns the default of the objects under prefix. marks are paths of annotations, of which one must
// be "true".
func newDefaultClass(view *watchcache.View, prefix string, marks ...string) *defaultClass {
	return &defaultClass{marked: source.New(view.Collection(prefix), func(e *watchcache.Entry) (candidate, bool) {
		for _, path := range marks {
			if v, _ := e.Field(path); v == "true" {
				created, _ := e.Field("metadata.creationTimestamp")
				return candidate{e.Name, created}, true
			}
		}
		return candidate{}, false
	})}
}

// name returns the default's name, "" if there is none.
func (d *defaultClass) name() string {
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
