package verb

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/read"
)

// write is one write in progress. Its fields hold the results that one phase leaves to the next. It belongs to one
// goroutine.
type write struct {
	*Verbs
	// call is the call of the write. A phase that needs a newer catalog or another version replaces it by a copy.
	call   *Call
	dryRun bool // the write stops before the transaction
	apply  bool // the write is a server-side apply
	scale  bool // admission receives the object's Scale in place of the object
	// documents are the documents in the request's body, as sent (codec.Documents).
	documents []string

	attributes *admit.Attributes
	// sequence orders the write among others: for kinds with rules across objects (refresh), and for plugins that
	// compare all objects (follow).
	sequence store.Sequence

	// entry is the stored entry that the write replaces, and old its object in the call's version; nil for a new
	// object.
	entry *watchcache.Entry
	old   object.Object
	// obj is the object to store under name.
	obj  object.Object
	name string
	// renewed is true if managedFields differ from old's in their times only, and the object differs.
	renewed bool
	// proofs are the proofs of the write, and hold the hold that the transaction passes.
	proofs []*read.Survey
	hold   store.Barrier
	// charged is true if the memory of the entry is charged to the request.
	charged bool
	// raise is the uid whose fence the transaction raises, usually "".
	raise string
}

// begin starts a write. dryRun is the parameter of the request.
func (v *Verbs) begin(c *Call, dryRun []string) *write {
	return &write{Verbs: v, call: c, dryRun: isDryRun(dryRun)}
}

// find reads the entry that the write replaces.
func (w *write) find(ctx context.Context) (err error) {
	w.entry, err = w.Current(ctx, w.call)
	w.name = w.call.Name
	return err
}

// decodeOld decodes the entry that the write replaces in the call's version, and returns the entry in that version. If
// metadata is true, the write changes only metadata and the version is the stored one.
func (w *write) decodeOld(ctx context.Context, metadata bool) (*watchcache.Entry, error) {
	if metadata {
		w.call = w.InStoredVersion(w.call, w.entry)
	}
	shown, err := w.InVersion(ctx, w.call, w.entry)
	if err != nil {
		return nil, err
	}
	w.old, err = w.Object(w.call, shown)
	return shown, err
}

// options returns the store options of a write over the entry.
func (w *write) options(also []store.Change) store.Options {
	return store.Options{
		TTL: ttl(w.call), Sequence: w.sequence, RaiseFence: w.raise, Also: also, Behind: behind(w.call), Passes: w.hold,
	}
}
