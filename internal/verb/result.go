package verb

import (
	"context"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Result is an object after a write.
type Result struct {
	// Object is the object in the call's version.
	Object    object.Object
	Documents []string // texts of the documents within the object, nil if its JSON has them (codec.Verbatim)
	// Created is true if the write created the object.
	Created bool
	// Deleted is true if the write removed the object, for instance an update that emptied the finalizers.
	Deleted bool

	encoded  []byte       // Object as JSON, nil until needed
	stored   codec.Stored // Object as JSON without the revision; unset if revision is 0
	revision int64
}

// result sets the new revision on an object. stored are the bytes in the store. If the call uses the storage version,
// clients get these bytes unchanged.
func (w *writer) result(ctx context.Context, c *Call, ch change, stored codec.Stored, revision int64) *Result {
	object.Meta(ch.obj)["resourceVersion"] = strconv.FormatInt(revision, 10)
	res := &Result{Object: ch.obj, Documents: stored.Documents}
	if c.readAsWritten(ch.obj) {
		res.stored, res.revision = stored, revision
		return res
	}
	// A read in this version returns more: it adds the defaults of the stored version.
	raw, err := w.reread(ctx, c, ch.name, stored, revision)
	if err != nil {
		return res // the write is done; respond with the written object
	}
	if v, err := codec.DecodeJSON(raw); err == nil {
		res.Object, _ = v.(object.Object)
	}
	res.encoded = raw
	return res
}

// dryResult is result for a dry run: stored is the form that would be stored, and the response shows it as a read
// would. The object keeps its resourceVersion.
func (r *Reader) dryResult(ctx context.Context, c *Call, obj object.Object, stored codec.Stored) (*Result, error) {
	if c.readAsWritten(obj) {
		return &Result{Object: obj, Documents: stored.Documents}, nil
	}
	out, err := convert.DecodeStored(stored.JSON)
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

// readAsWritten reports whether a read in the call's version returns obj, which is about to be stored, unchanged. That
// requires three things: no conversion; no missing status for which the schema has a default (all other defaults are
// set); no field that apply accepts and a read prunes.
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

// Bytes returns the object as JSON. It encodes on the first call, because many writers, such as controllers, need no
// JSON.
func (r *Result) Bytes() []byte {
	if r.encoded == nil && r.revision > 0 {
		r.encoded = r.stored.WithRevision(r.revision)
	} else if r.encoded == nil {
		r.encoded = codec.AppendJSON(nil, r.Object)
	}
	return r.encoded
}
