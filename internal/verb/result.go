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
	Object object.Object
	// JSON is its encoding with the resourceVersion, nil until needed.
	JSON      []byte
	Documents []string // texts of those within the object, nil if the JSON says it (codec.Verbatim)
	// Created is true if the write made the object.
	Created bool
	// Deleted is true if the write removed it: an update that emptied a dying object's finalizers.
	Deleted bool
}

// result puts a new revision on an object. stored is what went to the store; where the call's version is the stored one
// its bytes are served as they are.
func (w *writer) result(
	ctx context.Context, c *Call, ch change, stored codec.Stored, revision int64,
) *Result {
	object.Meta(ch.obj)["resourceVersion"] = strconv.FormatInt(revision, 10)
	res := &Result{Object: ch.obj, Documents: stored.Documents}
	res.JSON = stored.WithRevision(revision)
	if c.readAsWritten(ch.obj) {
		return res
	}
	// What a read in this version would show: the stored version's defaults have come in.
	raw, err := w.reread(ctx, c, ch.name, stored, revision)
	if err != nil {
		res.JSON = nil // the write is done; its answer is made of what was written
		return res
	}
	if v, err := codec.DecodeJSON(raw); err == nil {
		res.Object, _ = v.(object.Object)
	}
	res.JSON = raw
	return res
}

// dryResult is result for a dry run: obj would be stored as stored, and read as the answer shows. It keeps the
// resourceVersion that it has.
func (r *Reader) dryResult(
	ctx context.Context, c *Call, obj object.Object, stored codec.Stored,
) (*Result, error) {
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

// Bytes returns the object as JSON.
func (r *Result) Bytes() []byte {
	if r.JSON == nil {
		r.JSON = codec.AppendJSON(nil, r.Object)
	}
	return r.JSON
}
