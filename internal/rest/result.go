package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Result is an object as a write left it.
type Result struct {
	// Object is the object in the call's version.
	Object Object
	// JSON is its encoding with the resourceVersion, nil until needed.
	JSON []byte
	// Created is true if the write made the object.
	Created bool
	// Deleted is true if the write removed it: an update that emptied a dying object's finalizers.
	Deleted bool
}

// result puts a new revision on an object. stored is what went to the store; where the call's version is the stored one
// its bytes are served as they are.
func (s *Server) result(
	ctx context.Context, c *Call, obj Object, name string, stored codec.Stored, revision int64,
) *Result {
	object.Meta(obj)["resourceVersion"] = strconv.FormatInt(revision, 10)
	res := &Result{Object: obj}
	res.JSON = stored.WithRevision(revision)
	if c.readAsWritten(obj) {
		return res
	}
	// What a read in this version would show: the stored version's defaults have come in.
	raw, err := s.reread(ctx, c, name, stored.JSON, revision)
	if err != nil {
		res.JSON = nil // the write is done; its answer is made of what was written
		return res
	}
	if v, err := codec.DecodeJSON(raw); err == nil {
		res.Object, _ = v.(Object)
	}
	res.JSON = raw
	return res
}

// dryResult is result for a dry run: obj would be stored as stored, and read as the answer shows. It keeps the
// resourceVersion that it has.
func dryResult(ctx context.Context, converter *convert.Converter, c *Call, obj Object, stored codec.Stored) (*Result,
	error) {
	if c.readAsWritten(obj) {
		return &Result{Object: obj}, nil
	}
	out, err := decodeStored(stored.JSON)
	if err != nil {
		return nil, err
	}
	if out, err = converter.Reread(ctx, c.Resource, c.storage(), c.Version, out); err != nil {
		return nil, err
	}
	revision, has := object.Meta(obj)["resourceVersion"]
	object.SetOrDelete(object.Meta(out), "resourceVersion", revision, has)
	return &Result{Object: out}, nil
}

// readAsWritten reports whether a read in the call's version shows obj, which is about to be stored, as it is: it
// needs no conversion, lacks no status that the schema has a default for (all other defaults are there by now), and
// holds nothing that apply takes and a read prunes.
func (c *Call) readAsWritten(obj Object) bool {
	if c.Version != c.storage() {
		return false
	}
	_, hasStatus := obj["status"]
	lacksStatus := c.Version.Status && !hasStatus
	if !c.Resource.Custom() || !lacksStatus && !c.applies {
		return true
	}
	sch, err := c.Version.Schema()
	return err != nil || sch == nil || !(lacksStatus && sch.HasDefault("status") || c.applies && sch.PrunesApplied())
}

// Bytes returns the object as JSON.
func (r *Result) Bytes() []byte {
	if r.JSON == nil {
		r.JSON = codec.AppendJSON(nil, r.Object)
	}
	return r.JSON
}

// reread returns what has just been stored under name as a read in the call's version shows it.
func (s *Server) reread(ctx context.Context, c *Call, name string, stored []byte, revision int64) ([]byte, error) {
	e, err := watchcache.NewEntry(strings.TrimPrefix(c.key(name), c.Resource.Prefix+"/"), stored, revision)
	if err != nil {
		return nil, err
	}
	if e, err = s.inVersion(ctx, c, e); err != nil {
		return nil, err
	}
	return s.served(c, e)
}

// storage is the version in which the call stores objects.
func (c *Call) storage() *catalog.Version {
	if c.asStored {
		return c.Version
	}
	return c.Resource.Storage
}

// inStoredVersion returns the call in the version in which an entry is stored, where that matters: where it takes a
// webhook to get another.
func (s *Server) inStoredVersion(c *Call, e *watchcache.Entry) *Call {
	if !s.Convert.NeedsWebhook(c.Resource) {
		return c
	}
	if v := c.version(e.APIVersion); v != nil {
		one := *c
		one.Version, one.asStored = v, true
		return &one
	}
	return c
}

// toStorage encodes an object of the call's version as the store keeps it: in the storage version, without a revision.
func (s *Server) toStorage(ctx context.Context, c *Call, obj Object) (codec.Stored, error) {
	out, err := s.Convert.Convert(ctx, c.Resource, c.Version, c.storage(), obj)
	if err != nil {
		return codec.Stored{}, err
	}
	return codec.EncodeStored(out), nil
}

// inVersion returns an entry as of the call's version, if that takes asking somebody. All that looks at an entry's
// content comes after it.
func (s *Server) inVersion(ctx context.Context, c *Call, e *watchcache.Entry) (*watchcache.Entry, error) {
	return s.Convert.Entry(ctx, c.Resource, c.Version, e)
}

// allInVersion is inVersion for many. The slice is not changed.
func (s *Server) allInVersion(ctx context.Context, c *Call, entries []*watchcache.Entry) ([]*watchcache.Entry, error) {
	return s.Convert.Entries(ctx, c.Resource, c.Version, entries)
}

// fromEntry decodes an entry that inVersion returned into the call's version. The caller owns the result.
func (s *Server) fromEntry(c *Call, e *watchcache.Entry) (Object, error) {
	if e.IsConverted() {
		return decodeStored(e.JSON())
	}
	if raw := e.Cached(c.Version); raw != nil {
		return decodeStored(raw)
	}
	// Most entries that are written again have not been read since, so there are no bytes to decode, and nobody needs
	// any.
	return presented(c, e.JSON())
}

func decodeStored(raw []byte) (Object, error) {
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(Object)
	if !ok {
		return nil, errNotAnObject
	}
	return obj, nil
}

// served returns the bytes of an entry that inVersion returned, in the call's version, encoded at most once for each
// definition of the version.
func (s *Server) served(c *Call, e *watchcache.Entry) ([]byte, error) {
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
func presented(c *Call, stored []byte) (Object, error) {
	obj, err := decodeStored(stored)
	if err != nil {
		return nil, err
	}
	return obj, convert.Present(c.Resource, c.Version, obj)
}

// writeObject answers with one object, in the form the client asked for.
func (s *Server) writeObject(w http.ResponseWriter, r *http.Request, code int, c *Call, res *Result, media form) error {
	body, err := s.transform(c, media, res.Bytes(), res.Object)
	if err != nil {
		return err
	}
	return writeDocument(w, r, code, body, media, media.message(c))
}
