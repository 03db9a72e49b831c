package read

import (
	"context"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Finder computes the objects of a virtual resource for each read. It returns the named object, or all objects of the
// namespace if name is "" (of all namespaces if both are ""), in list order. Selectors match on names, namespaces and
// labels. If the named object does not exist, Finder returns the error for the client.
type Finder func(ctx context.Context, namespace, name string) ([]object.Object, error)

// unstored returns the object with a name ("" for all) as entries like those of the view. From then on a read of a
// virtual resource takes the usual path through selectors, representations and tables.
func (r *Reader) unstored(ctx context.Context, c *call.Call, name string) ([]*watchcache.Entry, error) {
	find := r.finders[c.Resource.Qualified()]
	if find == nil {
		return nil, call.NotServed()
	}
	objects, err := find(ctx, c.Namespace, name)
	if err != nil {
		return nil, err
	}
	entries := make([]*watchcache.Entry, len(objects))
	for i, obj := range objects {
		obj["apiVersion"], obj["kind"] = c.APIVersion(), c.Resource.Kind
		entries[i] = unstoredEntry(obj)
	}
	return entries, nil
}

func unstoredEntry(obj object.Object) *watchcache.Entry {
	meta := object.Meta(obj)
	var labels map[string]string
	if all, _ := meta["labels"].(object.Object); len(all) > 0 {
		labels = make(map[string]string, len(all))
		for k := range all {
			labels[k] = object.String(all, k)
		}
	}
	return watchcache.NewUnstored(object.String(meta, "namespace"), object.String(meta, "name"), labels,
		codec.AppendJSON(nil, obj))
}

// listUnstored returns all objects that match the selector, in one page. As in Kubernetes, limits and revisions have no
// effect.
func (r *Reader) listUnstored(ctx context.Context, c *call.Call, sel *selector.Selector) (*Page, error) {
	entries, err := r.unstored(ctx, c, "")
	entries = slices.DeleteFunc(entries, func(e *watchcache.Entry) bool { return !sel.Matches(e) })
	return &Page{Call: c, Entries: entries}, err
}
