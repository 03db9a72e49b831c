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
func (w *write) result(ctx context.Context, stored codec.Stored, revision int64) *Result {
	object.Meta(w.obj)["resourceVersion"] = strconv.FormatInt(revision, 10)
	res := &Result{Object: w.obj, Documents: stored.Documents}
	if w.readAsWritten() {
		res.stored, res.revision = stored, revision
		return res
	}
	// A read in this version returns more: it adds the defaults of the stored version.
	raw, err := w.Reread(ctx, w.call, w.name, stored, revision)
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
func (w *write) dryResult(ctx context.Context, stored codec.Stored) (*Result, error) {
	if w.readAsWritten() {
		return &Result{Object: w.obj, Documents: stored.Documents}, nil
	}
	out, err := convert.DecodeStored(stored.JSON)
	if err != nil {
		return nil, err
	}
	if out, err = w.Converter().Reread(ctx, w.call.Resource, w.call.Storage(), w.call.Version, out); err != nil {
		return nil, err
	}
	revision, has := object.Meta(w.obj)["resourceVersion"]
	object.SetOrDelete(object.Meta(out), "resourceVersion", revision, has)
	return &Result{Object: out, Documents: stored.Documents}, nil
}

// readAsWritten reports whether a read in the call's version returns the object to store unchanged. That
// requires three things: no conversion; no missing status for which the schema has a default (all other defaults are
// set); no field that apply accepts and a read prunes.
func (w *write) readAsWritten() bool {
	c := w.call
	if c.Version != c.Storage() {
		return false
	}
	_, hasStatus := w.obj["status"]
	lacksStatus := c.Version.Status && !hasStatus
	if !c.Resource.Custom() || !lacksStatus && !w.apply {
		return true
	}
	sch, err := c.Version.Schema()
	return err != nil || sch == nil || !(lacksStatus && sch.HasDefault("status") || w.apply && sch.PrunesApplied())
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
