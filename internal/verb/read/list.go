package read

import (
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Page is the result of one list request.
type Page struct {
	// Call is the call of the list, with the fields masked that its user may not read at the page's revision.
	Call      *call.Call
	Revision  int64 // 0 for a list of objects that are not stored
	Entries   []*watchcache.Entry
	Continue  string // continue token, "" at the end
	Remaining *int64 // number of objects after this page, nil if unknown
	Shard     string // selector of the listed shard, "" for the whole collection
}

// ListMeta returns the metadata of the list.
func (p *Page) ListMeta() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: p.ResourceVersion(), Continue: p.Continue, RemainingItemCount: p.Remaining}
	if p.Shard != "" {
		m.ShardInfo = &metav1.ShardInfo{Selector: p.Shard}
	}
	return m
}

// ResourceVersion returns the list's resourceVersion, "" if it has none.
func (p *Page) ResourceVersion() string {
	if p.Revision == 0 {
		return ""
	}
	return strconv.FormatInt(p.Revision, 10)
}

// lookEvery is the number of entries after which a list checks whether its request has ended.
const lookEvery = 1024

// List finds the entries of one page. The page points into an immutable snapshot: nothing is locked or copied.
func (r *Reader) List(ctx context.Context, c *call.Call, o *metainternal.ListOptions) (*Page, error) {
	sel, err := r.selector(c, o)
	if err != nil {
		return nil, err
	}
	if c.Resource.Virtual {
		return r.listUnstored(ctx, c, sel)
	}
	start, err := r.start(ctx, c, o, sel)
	if err != nil {
		return nil, err
	}
	if _, c, err = seeAt(c, sel, start.snapshot.Revision); err != nil {
		return nil, tooOldList()
	}
	if start, err = r.readableFrom(ctx, c, sel, start); err != nil {
		return nil, err
	}
	if r.convert.Changes(c.Resource) {
		return r.listConverted(ctx, c, o, sel, start)
	}
	p := &Page{Call: c, Revision: start.snapshot.Revision, Shard: sel.Shard.String()}
	if sel.Name != "" && o.Continue == "" && (sel.Namespace != "" || !c.Resource.Namespaced) {
		if e := start.snapshot.Get(sel.Namespace, sel.Name); sel.Matches(e) {
			p.Entries = append(p.Entries, e)
		}
		return p, nil
	}
	if sel.All() && o.Limit == 0 && c.Namespace == "" {
		p.Entries = make([]*watchcache.Entry, 0, start.snapshot.Len())
	}
	more, seen := false, 0
	sel.Scan(start.snapshot, start.after, func(e *watchcache.Entry) bool {
		if seen++; seen%lookEvery == 0 {
			err = ctx.Err()
		}
		if err != nil || !sel.Matches(e) {
			return err == nil
		}
		if o.Limit > 0 && int64(len(p.Entries)) == o.Limit {
			more = true
			return false
		}
		p.Entries = append(p.Entries, e)
		return true
	})
	if more {
		r.toBeContinued(c, p, start, sel)
	}
	return p, err
}

// listStart is the start of a list.
type listStart struct {
	snapshot *watchcache.Snapshot
	after    string // the key before the first one
}

// start chooses the snapshot by continue, resourceVersion and resourceVersionMatch. Source: the table "The
// resourceVersionMatch parameter" in the Kubernetes API concepts.
func (r *Reader) start(
	ctx context.Context, c *call.Call, o *metainternal.ListOptions, sel *selector.Selector,
) (listStart, error) {
	collection := r.view.Collection(c.Resource.Prefix)
	if o.Continue != "" {
		return r.startAtToken(ctx, c, collection, o)
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && o.ResourceVersion != "" && o.ResourceVersion != "0"
	if _, err := r.catchUp(ctx, o.ResourceVersion); err != nil {
		return listStart{}, inList(err)
	}
	if exact {
		at, err := parseVersion(o.ResourceVersion)
		if err != nil {
			return listStart{}, err
		}
		snapshot, err := collection.SnapshotAt(ctx, at)
		if errors.Is(err, watchcache.ErrExpired) {
			return listStart{}, tooOldList()
		}
		return listStart{snapshot: snapshot}, err
	}
	return listStart{snapshot: sel.Snapshot(collection)}, nil
}

func (r *Reader) startAtToken(
	ctx context.Context, c *call.Call, collection *watchcache.Collection, o *metainternal.ListOptions,
) (listStart, error) {
	token, err := parseToken(o.Continue)
	if err != nil {
		return listStart{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return listStart{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	after := token.After()
	if c.Namespace != "" {
		after = c.Namespace + "/" + after
	}
	if token.Revision < 0 {
		_, err := r.view.Fresh(ctx)
		return listStart{snapshot: collection.Snapshot(), after: after}, err
	}
	if _, err := r.reach(ctx, token.Revision); err != nil {
		return listStart{}, err
	}
	snapshot, err := collection.SnapshotAt(ctx, token.Revision)
	if errors.Is(err, watchcache.ErrExpired) {
		return listStart{}, tooOldToken(continueToken{Revision: -1, Start: token.Start}.Encode())
	}
	return listStart{snapshot: snapshot, after: after}, err
}

// toBeContinued sets the continue token of a page and, for lists without selectors, the number of remaining objects.
func (r *Reader) toBeContinued(c *call.Call, p *Page, start listStart, sel *selector.Selector) {
	last := p.Entries[len(p.Entries)-1]
	key := last.Key()
	if sel.All() {
		left := int64(start.snapshot.Count(c.Namespace, key))
		p.Remaining = &left
	}
	if c.Namespace != "" {
		key = last.Name // tokens of one namespace do not name it
	}
	r.view.Collection(c.Resource.Prefix).Pin(start.snapshot)
	p.Continue = continueToken{Revision: p.Revision, Start: key + "\x00"}.Encode()
}
