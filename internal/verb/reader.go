package verb

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Reader reads objects. It stands on the view, which has all objects in memory, and on the catalog, which says in which
// versions they are served.
type Reader struct {
	catalog *catalog.Catalog
	view    *watchcache.View
	convert *convert.Converter
	finders map[string]Finder
	now     func() time.Time
}

// View returns the view that is read.
func (r *Reader) View() *watchcache.View { return r.view }

// Catalog returns what is served.
func (r *Reader) Catalog() *catalog.Catalog { return r.catalog }

// Now returns the time.
func (r *Reader) Now() time.Time { return r.now() }

// Read returns a stored object of a resource in one of its versions: what policies take as parameters.
func (r *Reader) Read(
	ctx context.Context, res *catalog.Resource, v *catalog.Version, e *watchcache.Entry,
) (object.Object, error) {
	e, err := r.convert.Entry(ctx, res, v, e)
	if err != nil {
		return nil, err
	}
	return r.Object(&Call{Resource: res, Version: v}, e)
}

// Env is what the rules of the call's kind may know about the world.
func (r *Reader) Env(c *Call) catalog.Env {
	return catalog.Env{Now: r.now(), Snapshot: c.Snapshot, User: c.User}
}

// Current returns the newest entry of the named object, or a NotFound error.
func (r *Reader) Current(ctx context.Context, c *Call) (*watchcache.Entry, error) {
	if _, err := r.view.Fresh(ctx); err != nil {
		return nil, err
	}
	return r.seen(c)
}

// seen returns the named object as the view has it.
func (r *Reader) seen(c *Call) (*watchcache.Entry, error) {
	e := r.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if e != nil {
		return e, nil
	}
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	if why := path.IsValidPathSegmentName(c.Name); len(why) > 0 {
		return nil,
			apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", c.Name, strings.Join(why, ";")))
	}
	return nil, apierrors.NewNotFound(c.GroupResource(), c.Name)
}

// reread returns what has just been stored under name as a read in the call's version shows it.
func (r *Reader) reread(ctx context.Context, c *Call, name string, stored []byte, revision int64) ([]byte, error) {
	e, err := watchcache.NewEntry(strings.TrimPrefix(c.key(name), c.Resource.Prefix+"/"), stored, revision)
	if err != nil {
		return nil, err
	}
	if e, err = r.inVersion(ctx, c, e); err != nil {
		return nil, err
	}
	return r.JSON(c, e)
}

// inStoredVersion returns the call in the version in which an entry is stored, where that matters: where it takes a
// webhook to get another.
func (r *Reader) inStoredVersion(c *Call, e *watchcache.Entry) *Call {
	if !r.convert.NeedsWebhook(c.Resource) {
		return c
	}
	if v := c.version(e.APIVersion); v != nil {
		one := *c
		one.Version, one.asStored = v, true
		return &one
	}
	return c
}

// inVersion returns an entry as of the call's version, if that takes a webhook. All that looks at an entry's
// content comes after it.
func (r *Reader) inVersion(ctx context.Context, c *Call, e *watchcache.Entry) (*watchcache.Entry, error) {
	return r.convert.Entry(ctx, c.Resource, c.Version, e)
}

// allInVersion is inVersion for many. The slice is not changed.
func (r *Reader) allInVersion(ctx context.Context, c *Call, entries []*watchcache.Entry) ([]*watchcache.Entry, error) {
	return r.convert.Entries(ctx, c.Resource, c.Version, entries)
}

// Object decodes an entry that inVersion returned into the call's version. The caller owns the result.
func (r *Reader) Object(c *Call, e *watchcache.Entry) (object.Object, error) {
	if e.IsConverted() {
		return decodeStored(e.JSON())
	}
	if raw := e.Cached(c.Version); raw != nil {
		return decodeStored(raw)
	}
	// Most entries that are written again have not been read since, so there are no bytes to decode, and no reader
	// needs them.
	return presented(c, e.JSON())
}

func decodeStored(raw []byte) (object.Object, error) {
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object.Object)
	if !ok {
		return nil, errNotAnObject
	}
	return obj, nil
}

// JSON returns the bytes of an entry that inVersion returned, in the call's version, encoded at most once for each
// definition of the version.
func (r *Reader) JSON(c *Call, e *watchcache.Entry) ([]byte, error) {
	if e.IsConverted() {
		return e.JSON(), nil
	}
	if raw := e.Cached(c.Version); raw != nil { // nearly always, and without making a closure
		return raw, nil
	}
	return e.Encoded(c.Version, func() ([]byte, error) { return present(c, e.JSON()) })
}

// present brings stored bytes into the call's version. What is stored under today's definition in the asked version
// comes back unchanged, as the same slice.
func present(c *Call, stored []byte) ([]byte, error) {
	obj, err := presented(c, stored)
	if err != nil {
		return nil, err
	}
	if out := codec.AppendJSON(nil, obj); string(out) != string(stored) {
		return out, nil
	}
	return stored, nil
}

// presented decodes stored bytes into the call's version.
func presented(c *Call, stored []byte) (object.Object, error) {
	obj, err := decodeStored(stored)
	if err != nil {
		return nil, err
	}
	return obj, convert.Present(c.Resource, c.Version, obj)
}
