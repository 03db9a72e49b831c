// Package read gets, lists and watches objects, both built-in and custom.
//
// It stands below the writes of package verb, whose Verbs embed its Reader: they read the current state of an object
// from it. Every read is served from the watch cache, or from the Finder of a resource that is not stored. Reader is
// safe for concurrent use; a Watch belongs to one goroutine.
package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Reader reads objects. The view holds all objects in memory, and the catalog defines the versions in which they are
// served.
type Reader struct {
	catalog *catalog.Catalog
	view    *watchcache.View
	convert *convert.Converter
	finders map[string]Finder
	now     func() time.Time
	corrupt corrupt.Texts
	sharded bool
}

// Config holds the dependencies of a Reader. All fields are required unless noted otherwise.
type Config struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	Convert *convert.Converter
	// Finders compute readable virtual resources: "componentstatuses". Optional.
	Finders map[string]Finder
	Now     func() time.Time
	// Corrupt makes the errors about unreadable objects.
	Corrupt corrupt.Texts
	// Sharded enables the shardSelector parameter of lists and watches.
	Sharded bool
}

// New returns a reader.
func New(c Config) *Reader {
	return &Reader{
		catalog: c.Catalog, view: c.View, convert: c.Convert, finders: c.Finders, now: c.Now, corrupt: c.Corrupt,
		sharded: c.Sharded,
	}
}

// View returns the view that the Reader reads from.
func (r *Reader) View() *watchcache.View { return r.view }

// Catalog returns the catalog of served resources.
func (r *Reader) Catalog() *catalog.Catalog { return r.catalog }

// Converter returns the converter between versions.
func (r *Reader) Converter() *convert.Converter { return r.convert }

// Now returns the time.
func (r *Reader) Now() time.Time { return r.now() }

// Read returns a stored object of a resource in one of its versions, for use as a policy parameter.
func (r *Reader) Read(
	ctx context.Context, res *catalog.Resource, v *catalog.Version, e *watchcache.Entry,
) (object.Object, error) {
	c := &call.Call{Resource: res, Version: v}
	e, err := r.InVersion(ctx, c, e)
	if err != nil {
		return nil, err
	}
	return r.Object(c, e)
}

// Env returns the environment that the rules of the call's kind may use.
func (r *Reader) Env(c *call.Call) catalog.Env {
	return catalog.Env{Now: r.now(), Snapshot: c.Snapshot, User: c.User}
}

// Current returns the newest entry of the named object, or a NotFound error.
func (r *Reader) Current(ctx context.Context, c *call.Call) (*watchcache.Entry, error) {
	if _, err := r.view.Fresh(ctx); err != nil {
		return nil, err
	}
	return r.seen(ctx, c)
}

// seen returns the named object from the view. An unreadable object is an error.
func (r *Reader) seen(ctx context.Context, c *call.Call) (*watchcache.Entry, error) {
	e := r.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	switch {
	case e == nil:
	case e.Unreadable() != nil:
		return r.Heal(ctx, c, e)
	default:
		return e, nil
	}
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	if why := path.IsValidPathSegmentName(c.Name); len(why) > 0 {
		return nil,
			apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", c.Name, strings.Join(why, ";")))
	}
	return nil, apierrors.NewNotFound(c.GroupResource(), c.Name)
}

// Reread returns the object just stored under name as a read in the call's version would return it.
func (r *Reader) Reread(
	ctx context.Context, c *call.Call, name string, s codec.Stored, revision int64,
) ([]byte, error) {
	e, err := watchcache.NewEntry(strings.TrimPrefix(c.Key(name), c.Resource.Prefix+"/"), s.JSON, revision)
	if err != nil {
		return nil, err
	}
	if e, err = r.InVersion(ctx, c, e.WithDocuments(s.Documents)); err != nil {
		return nil, err
	}
	return r.JSON(c, e)
}

// InStoredVersion returns the call in the stored version of an entry, if another version would need a webhook.
// Otherwise it returns c.
func (r *Reader) InStoredVersion(c *call.Call, e *watchcache.Entry) *call.Call {
	if !r.convert.Changes(c.Resource) {
		return c
	}
	if v := c.VersionOf(e.APIVersion); v != nil {
		return c.InStored(v)
	}
	return c
}

// InVersion converts an entry to the call's version, if that takes a webhook. Callers convert an entry before they look
// at its content.
func (r *Reader) InVersion(ctx context.Context, c *call.Call, e *watchcache.Entry) (*watchcache.Entry, error) {
	if err := r.corrupt.Read(e); err != nil {
		return nil, err
	}
	return r.convert.Entry(ctx, c.Resource, c.Version, e)
}

// AllInVersion is inVersion for several entries. It does not change the slice.
func (r *Reader) AllInVersion(
	ctx context.Context, c *call.Call, entries []*watchcache.Entry,
) ([]*watchcache.Entry, error) {
	for _, e := range entries {
		if err := r.corrupt.Read(e); err != nil {
			return nil, err
		}
	}
	return r.convert.Entries(ctx, c.Resource, c.Version, entries)
}

// Object decodes an entry that inVersion returned into the call's version. The caller owns the result.
func (r *Reader) Object(c *call.Call, e *watchcache.Entry) (object.Object, error) {
	return r.ObjectIn(c.Resource, c.Version, e)
}

// ObjectIn is Object for callers without a call.
func (r *Reader) ObjectIn(res *catalog.Resource, ver *catalog.Version, e *watchcache.Entry) (object.Object, error) {
	if e.IsConverted() {
		return convert.DecodeStored(e.JSON())
	}
	if raw := e.Cached(ver); raw != nil && e.Documents() == nil {
		return convert.DecodeStored(raw)
	}
	if err := r.corrupt.Read(e); err != nil {
		return nil, err
	}
	// Most entries that are rewritten have not been read since: there are no cached bytes to decode, and caching them
	// would serve no reader.
	return convert.PresentStored(res, ver, e.JSON())
}

// JSON returns the bytes of an entry from inVersion, in the call's version and masked for its user. The bytes are
// encoded at most once for each definition of the version.
func (r *Reader) JSON(c *call.Call, e *watchcache.Entry) ([]byte, error) {
	if c.Secrecy.Masked {
		return r.maskedJSON(c, e)
	}
	return r.JSONIn(c.Resource, c.Version, e)
}

// JSONIn is JSON without a call and without masking.
func (r *Reader) JSONIn(res *catalog.Resource, ver *catalog.Version, e *watchcache.Entry) ([]byte, error) {
	if e.IsConverted() {
		return e.JSON(), nil
	}
	if raw := e.Cached(ver); raw != nil { // the common case; it allocates no closure
		return raw, nil
	}
	if err := r.corrupt.Read(e); err != nil {
		return nil, err
	}
	return e.Encoded(ver, func() ([]byte, error) {
		raw, err := convert.PresentBytes(res, ver, e.JSON())
		if err != nil || e.Documents() == nil {
			return raw, err
		}
		return codec.WithDocuments(raw, ver.New(), e.Documents())
	})
}

// selector returns the selector of a list or watch of the call's collection. Virtual resources have no shards.
func (r *Reader) selector(c *call.Call, o *metainternal.ListOptions) (*selector.Selector, error) {
	sel, err := selector.New(selector.Collection{
		Resource: c.Resource, Version: c.Version, Namespace: c.Namespace,
		NeedsWebhook: r.convert.Changes(c.Resource), Entries: r,
	}, o.LabelSelector, o.FieldSelector, c.Visible)
	if err != nil || o.ShardSelector == "" || !r.sharded || c.Resource.Virtual {
		return sel, err
	}
	sel.Shard, err = selector.ParseShard(o.ShardSelector)
	return sel, err
}

// IndexOf returns the name of the index for the selectors and the value to look up; nil if no index applies.
func (r *Reader) IndexOf(c *call.Call, l labels.Selector, f fields.Selector) (name any, value string) {
	if sel, err := r.selector(c, &metainternal.ListOptions{LabelSelector: l, FieldSelector: f}); err == nil {
		ix, value, _ := sel.Index()
		return ix.Name, value
	}
	return nil, ""
}

// maskedForm identifies the masked form of an entry in one version. All callers who see it masked share its bytes.
type maskedForm struct{ version *catalog.Version }

func (r *Reader) maskedJSON(c *call.Call, e *watchcache.Entry) ([]byte, error) {
	return e.Encoded(maskedForm{c.Version}, func() ([]byte, error) {
		raw, err := r.JSONIn(c.Resource, c.Version, e)
		if err != nil {
			return nil, err
		}
		return c.Secrecy.Fields.MaskJSON(raw)
	})
}
