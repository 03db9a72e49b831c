package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/admit/source"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Lookup returns an object by name, or nil if there is none. namespace is "" for cluster-scoped objects.
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

// DefaultClass finds the default class of a kind: the newest of the classes with one of the annotations, and among
// equally new ones the first by name.
type DefaultClass struct {
	marked *source.Source[candidate]
	chosen source.Derived[candidate, string]
}

// candidate is a class that is marked as default.
type candidate struct {
	name    string
	created string // RFC 3339, UTC: it sorts chronologically
}

// NewDefaultClass returns the DefaultClass of the objects under prefix. marks are annotation paths; one of them must be
// "true".
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

// Name returns the default's name, or "" if there is none.
func (d *DefaultClass) Name() string {
	return d.chosen.Get(d.marked.List(), func(all []candidate) string {
		var best candidate
		for _, c := range all { // sorted by name
			if best.name == "" || c.created > best.created {
				best = c
			}
		}
		return best.name
	})
}
