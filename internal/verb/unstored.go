package verb

import (
	"context"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Finder finds out the objects of a virtual resource at each read: the one of that name in a namespace, or all of them
// if name is "", of all namespaces if that is "" too, in the order in which they are to be listed. Selectors look at
// their names, namespaces and labels. If there is none of that name it returns the error that the client gets.
type Finder func(ctx context.Context, namespace, name string) ([]object.Object, error)

// unstored returns what is found out under a name, "" for all, as entries like those of the view: from there on a read
// of a virtual resource goes the usual way, through selectors, forms and tables.
func (r *Reader) unstored(ctx context.Context, c *Call, name string) ([]*watchcache.Entry, error) {
	find := r.finders[c.Resource.Qualified()]
	if find == nil {
		return nil, NotServed()
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

// listUnstored returns all that the selector keeps, in one page. Limits and revisions mean nothing here; Kubernetes
// ignores them too.
func (r *Reader) listUnstored(ctx context.Context, c *Call, sel *selector.Selector) (*Page, error) {
	entries, err := r.unstored(ctx, c, "")
	return &Page{Entries: slices.DeleteFunc(entries, func(e *watchcache.Entry) bool { return !sel.Matches(e) })}, err
}
