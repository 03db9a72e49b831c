// Package verb gets, lists, watches, creates, updates, patches, applies and deletes objects, of built-in and custom
// kinds alike.
//
// It stands in the middle of a request's path, below package rest, which speaks HTTP with clients, and beside the
// controllers, which call it in process. A write reads top to bottom in create.go, update.go and delete.go: decode,
// admit, note who owns which field, prepare, validate, and commit (commit.go), the one place that writes an object to
// the store. A read (Reader) answers from the watch cache.
//
// A Call is one request to one resource. It holds the catalog snapshot that the request began with, so an answer never
// mixes two states of a definition. Verbs and Reader are safe for concurrent use; a Call belongs to one goroutine. The
// package knows kinds by what the catalog says of them; what only some kinds have comes from their packages, as
// Answers, Actions, Finders and Allocators by the name of the resource.
package verb

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/keeper"
)

// Config is what Verbs work with. All fields are required unless they say otherwise.
type Config struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	Store   *store.Store
	Admit   admit.Chain
	// Convert converts between versions; by strategy None only if nil.
	Convert *convert.Converter
	// Answers are those of virtual resources: "tokenreviews.authentication.k8s.io", "serviceaccounts/token". Optional.
	Answers map[string]Answer
	// Actions are those of the subresources that take an object of another kind: "pods/eviction". Optional.
	Actions map[string]Action
	// Finders are those of the virtual resources that can be read: "componentstatuses". Optional.
	Finders map[string]Finder
	// Allocators are those of the kinds whose objects have what no other may have: "services". Optional.
	Allocators map[string]Allocator
	// Updated are called after each update that has been written, by the name of what was written to:
	// "certificatesigningrequests.certificates.k8s.io/status". They get the object as it was and as it is, and change
	// neither. Optional.
	Updated map[string]func(old, now object.Object)
	// Guards are those of the kinds whose objects give rights: "roles.rbac.authorization.k8s.io". Optional.
	Guards map[string]Guard
	// Limits are those of the kinds of which some users may change only parts: "resourceclaims.resource.k8s.io/status".
	// Optional.
	Limits  map[string]Limit
	Keepers keeper.Keepers // of kinds that are kept somewhere else; optional
	// Authorizer is asked whether an update or an apply may create what does not exist. Nil allows it.
	Authorizer authz.Authorizer
	// Now, NewUID and NewSuffix (the random end of a generated name) are passed in so that tests are exact.
	Now       func() time.Time
	NewUID    func() string
	NewSuffix func() string
	// Storing encodes what is stored. Optional: all is JSON.
	Storing *convert.Storing
	// Cipher encrypts what is stored. Optional.
	Cipher convert.Cipher
	// UnsafeDeletion lets those who may do that delete objects that cannot be read: kube's feature gate
	// AllowUnsafeMalformedObjectDeletion.
	UnsafeDeletion bool
	// Sharded lets lists and watches ask for a shard of a collection: kube's feature gate ShardedListAndWatch. Without
	// it they get all of it, as from a server that does not know the parameter.
	Sharded bool
	// Log is optional.
	Log *slog.Logger
}

// Verbs are the operations on objects.
type Verbs struct {
	*Reader

	decoder     *decoder
	admission   *admission
	tracker     *tracker
	allocations *allocations
	sequences   *sequences
	writer      *writer

	answers   map[string]Answer
	actions   map[string]Action
	guards    map[string]Guard
	limits    map[string]Limit
	newSuffix func() string
	log       *slog.Logger
}

// New returns the operations on what c describes.
func New(c Config) *Verbs {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Convert == nil {
		c.Convert = convert.New(convert.Options{})
	}
	r := &Reader{
		catalog: c.Catalog, view: c.View, convert: c.Convert, finders: c.Finders, now: c.Now, sharded: c.Sharded,
	}
	r.corrupt = corrupt.Texts{Named: c.UnsafeDeletion, Path: c.Store.Path}
	v := &Verbs{
		Reader:    r,
		decoder:   newDecoder(c.Catalog, c.Actions),
		admission: &admission{Reader: r, chain: c.Admit, authorizer: c.Authorizer},
		tracker:   &tracker{Reader: r, newUID: c.NewUID, log: c.Log},
		sequences: &sequences{Reader: r, store: c.Store},
		answers:   c.Answers, actions: c.Actions, guards: c.Guards, limits: c.Limits,
		newSuffix: c.NewSuffix, log: c.Log,
	}
	encoder := &encoder{Reader: r, store: c.Store, storing: c.Storing, cipher: c.Cipher}
	v.allocations = &allocations{
		Reader: r, store: c.Store, allocators: c.Allocators, encoder: encoder, tracker: v.tracker, log: c.Log,
	}
	v.writer = &writer{
		Reader: r, store: c.Store, encoder: encoder, allocations: v.allocations, admission: v.admission,
		hooks: c.Updated, keepers: c.Keepers,
	}
	for _, p := range c.Admit.Plugins {
		if l, ok := p.(admit.Lifecycle); ok {
			v.writer.lifecycle = l
		}
	}
	return v
}

// New completes an object that a program makes for Create: kind, apiVersion and defaults.
func (v *Verbs) New(c *Call, obj object.Object) (object.Object, error) { return newObject(c, obj) }

// NewTyped is New for a value of the Go type that the call's kind has in its version. It needs no decoding: that would
// bring it into the form in which it is.
func (v *Verbs) NewTyped(c *Call, typed any) (object.Object, error) {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	obj["apiVersion"], obj["kind"] = c.APIVersion(), c.Resource.Kind
	if rules := c.Strategy(); rules != nil && rules.Default != nil {
		rules.Default(obj)
	}
	return obj, nil
}

func newObject(c *Call, obj object.Object) (object.Object, error) {
	obj["apiVersion"], obj["kind"] = c.APIVersion(), c.Resource.Kind
	_, err := c.normalize(obj)
	return obj, err
}

// Log returns the log for those who act through the verbs.
func (v *Verbs) Log() *slog.Logger { return v.log }

// NewUID returns a fresh uid.
func (v *Verbs) NewUID() string { return v.tracker.newUID() }

// Shared reports whether other servers write to the same store.
func (v *Verbs) Shared() bool { return v.writer.store.Shared() }

// Repair writes the records that the named object of the call lacks: those of objects that an earlier version has
// stored, and those that a client has deleted. What another object has taken meanwhile stays with that object.
func (v *Verbs) Repair(ctx context.Context, c *Call) error { return v.allocations.repair(ctx, c) }

// Free deletes the record of a thing that no object has, unless it has changed since the revision.
func (v *Verbs) Free(ctx context.Context, prefix, name string, revision int64) error {
	_, err := v.writer.store.Delete(ctx, prefix+"/"+name, revision)
	return err
}

// Leaked reports whether the record that stands under prefix and name is of a thing that the call's object does not
// have.
func (v *Verbs) Leaked(c *Call, prefix, name string) (bool, error) {
	return v.allocations.leaked(c, prefix, name)
}
