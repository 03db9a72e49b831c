package verb

import (
	"context"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Result is an object as a write left it.
type Result struct {
	// Object is the object in the call's version.
	Object    object.Object
	Documents []string // texts of those within the object, nil if its JSON says it (codec.Verbatim)
	// Created is true if the write made the object.
	Created bool
	// Deleted is true if the write removed it: an update that emptied a dying object's finalizers.
	Deleted bool

	encoded  []byte       // Object as JSON, nil until needed
	stored   codec.Stored // Object as JSON, but for the revision; none if that is 0
	revision int64
}

// result puts a new revision on an object. stored is what went to the store; where the call's version is the stored one
// its bytes are served as they are.
func (w *writer) result(ctx context.Context, c *Call, ch change, stored codec.Stored, revision int64) *Result {
	object.Meta(ch.obj)["resourceVersion"] = strconv.FormatInt(revision, 10)
	res := &Result{Object: ch.obj, Documents: stored.Documents}
	if c.readAsWritten(ch.obj) {
		res.stored, res.revision = stored, revision
		return res
	}
	// What a read in this version would show: the stored version's defaults have come in.
	raw, err := w.reread(ctx, c, ch.name, stored, revision)
	if err != nil {
		return res // the write is done; its answer is made of what was written
	}
	if v, err := codec.DecodeJSON(raw); err == nil {
		res.Object, _ = v.(object.Object)
	}
	res.encoded = raw
	return res
}

// dryResult is result for a dry run: obj would be stored as stored, and read as the answer shows. It keeps the
// resourceVersion that it has.
func (r *Reader) dryResult(ctx context.Context, c *Call, obj object.Object, stored codec.Stored) (*Result, error) {
	if c.readAsWritten(obj) {
		return &Result{Object: obj, Documents: stored.Documents}, nil
	}
	out, err := decodeStored(stored.JSON)
	if err != nil {
		return nil, err
	}
	if out, err = r.convert.Reread(ctx, c.Resource, c.storage(), c.Version, out); err != nil {
		return nil, err
	}
	revision, has := object.Meta(obj)["resourceVersion"]
	object.SetOrDelete(object.Meta(out), "resourceVersion", revision, has)
	return &Result{Object: out, Documents: stored.Documents}, nil
}

// readAsWritten reports whether a read in the call's version shows obj, which is about to be stored, as it is: it
// needs no conversion, lacks no status that the schema has a default for (all other defaults are there by now), and
// holds nothing that apply takes and a read prunes.
func (c *Call) readAsWritten(obj object.Object) bool {
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

// Bytes returns the object as JSON. Many who write, controllers among them, never ask.
func (r *Result) Bytes() []byte {
	if r.encoded == nil && r.revision > 0 {
		r.encoded = r.stored.WithRevision(r.revision)
	} else if r.encoded == nil {
		r.encoded = codec.AppendJSON(nil, r.Object)
	}
	return r.encoded
}
