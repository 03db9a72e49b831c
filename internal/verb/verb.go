// Package verb creates, updates, patches, applies and deletes objects, both built-in and custom, and names the types of
// calls and reads.
//
// It is the middle of a request's path: package rest, which speaks HTTP, calls it, and controllers call it in process.
// A write reads top to bottom in create.go, update.go and delete.go: decode, admit, track field ownership, prepare,
// validate, and commit (commit.go), which writes to the store. The results of these steps are in a write. Package read
// has the reads; Verbs embeds its Reader.
//
// Verbs is safe for concurrent use. The package takes all facts about kinds from the catalog. Kind-specific code comes
// from other packages as Answers, Actions, Finders and Allocators, keyed by the name of the resource.
package verb

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/primary"
	"github.com/bowsprit/bowsprit/internal/verb/read"
)

// The types of calls and reads have names here, so that other packages import only this one.
type (
	// Call is one request to one resource.
	Call = call.Call
	// Client is the client's part of a call.
	Client = read.Client
	// Reader reads objects.
	Reader = read.Reader
	// Page is the result of one list request.
	Page = read.Page
	// Watch is one watch of a collection.
	Watch = read.Watch
	// Event is a change in a watch.
	Event = read.Event
	// Finder computes the objects of a virtual resource.
	Finder = read.Finder
)

// Left and Hidden are the types of events for objects that leave a watch: see read.Left.
const (
	Left   = read.Left
	Hidden = read.Hidden
)

// NotServed is the error for an unknown path.
func NotServed() error { return call.NotServed() }

// Config holds the dependencies of Verbs. All fields are required unless noted otherwise.
type Config struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	Store   *store.Store
	Admit   admit.Chain
	// Convert converts between versions; nil supports only the strategy None.
	Convert *convert.Converter
	// Answers handle virtual resources: "tokenreviews.authentication.k8s.io", "serviceaccounts/token". Optional.
	Answers map[string]Answer
	// Actions handle subresources with a body of another kind: "pods/eviction". Optional.
	Actions map[string]Action
	// Finders compute readable virtual resources: "componentstatuses". Optional.
	Finders map[string]Finder
	// Allocators assign the exclusive properties of kinds: "services". Optional.
	Allocators map[string]Allocator
	// Updated hooks run after each written update, keyed by its target:
	// "certificatesigningrequests.certificates.k8s.io/status". They receive the old and the new object and change
	// neither. Optional.
	Updated map[string]func(old, now object.Object)
	// Guards check writes to kinds that grant rights: "roles.rbac.authorization.k8s.io". Optional.
	Guards map[string]Guard
	// CustomGuards check writes of custom objects: "portforwards.kwok.x-k8s.io". Optional.
	CustomGuards map[string]Guard
	// Limits check updates of kinds that some users may change only in part: "resourceclaims.resource.k8s.io/status".
	// Optional.
	Limits map[string]Limit
	// Protections protect the objects of definitions: "customresourcedefinitions.apiextensions.k8s.io". Optional.
	Protections map[string]Protection
	Primaries   primary.Stores // for kinds with another primary store; optional
	// Authorizer decides whether an update or apply may create a missing object. Nil allows it.
	Authorizer authz.Authorizer
	// Now, NewUID and NewSuffix (the random end of a generated name) are injected so that tests are deterministic.
	Now       func() time.Time
	NewUID    func() string
	NewSuffix func() string
	// Storing encodes stored objects. Optional: the default is JSON.
	Storing *convert.Storing
	// Cipher encrypts stored objects. Optional.
	Cipher convert.Cipher
	// UnsafeDeletion lets users with the permission delete unreadable objects. It is the feature gate
	// AllowUnsafeMalformedObjectDeletion of Kubernetes.
	UnsafeDeletion bool
	// Sharded enables the shardSelector parameter of lists and watches. It is the feature gate ShardedListAndWatch of
	// Kubernetes. If disabled, the parameter is ignored and clients get the whole collection.
	Sharded bool
	// Log is optional.
	Log *slog.Logger
}

// Verbs implements the operations on objects.
type Verbs struct {
	*Reader

	store       *store.Store
	decoder     *decoder
	admission   *admission
	tracker     *tracker
	allocations *allocations
	sequences   *sequences
	holds       *holds
	encoder     *encoder
	// lifecycle is the plugin that keeps new objects out of terminating namespaces; nil if it is disabled.
	lifecycle admit.Mutator

	answers      map[string]Answer
	actions      map[string]Action
	guards       map[string]Guard
	customGuards map[string]Guard
	limits       map[string]Limit
	protections  protections
	hooks        map[string]func(old, now object.Object)
	primaries    primary.Stores
	newSuffix    func() string
	log          *slog.Logger
}

// New returns the operations for a configuration.
func New(c Config) *Verbs {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Convert == nil {
		c.Convert = convert.New(convert.Options{})
	}
	r := read.New(read.Config{
		Catalog: c.Catalog, View: c.View, Convert: c.Convert, Finders: c.Finders, Now: c.Now, Sharded: c.Sharded,
		Corrupt: corrupt.Texts{Named: c.UnsafeDeletion, Path: c.Store.Path},
	})
	v := &Verbs{
		Reader:    r,
		store:     c.Store,
		decoder:   newDecoder(c.Catalog, c.Actions),
		admission: &admission{Reader: r, chain: c.Admit, authorizer: c.Authorizer},
		tracker:   &tracker{Reader: r, newUID: c.NewUID, log: c.Log},
		sequences: &sequences{store: c.Store},
		holds:     &holds{Reader: r, store: c.Store},
		encoder:   &encoder{Reader: r, store: c.Store, storing: c.Storing, cipher: c.Cipher},
		answers:   c.Answers, actions: c.Actions, guards: c.Guards, customGuards: c.CustomGuards, limits: c.Limits,
		protections: c.Protections,
		hooks:       c.Updated, primaries: c.Primaries, newSuffix: c.NewSuffix, log: c.Log,
	}
	v.allocations = &allocations{
		Reader: r, store: c.Store, allocators: c.Allocators, encoder: v.encoder, tracker: v.tracker, log: c.Log,
	}
	for _, p := range c.Admit.Plugins {
		if l, ok := p.(admit.Lifecycle); ok {
			v.lifecycle = l
		}
	}
	return v
}

// New completes an in-process object for Create: kind, apiVersion and defaults.
func (v *Verbs) New(c *Call, obj object.Object) (object.Object, error) { return newObject(c, obj) }

// NewTyped is New for a Go value of the call's kind and version. The value is already in decoded form.
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
	_, err := normalize(c, obj)
	return obj, err
}

// ServerUser returns the identity of the server itself, for writes that Kubernetes makes as kube-apiserver. Policies
// and webhooks may match on the name.
func ServerUser() user.Info {
	return &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	}
}

// Log returns the log for users of the verbs.
func (v *Verbs) Log() *slog.Logger { return v.log }

// NewUID returns a fresh uid.
func (v *Verbs) NewUID() string { return v.tracker.newUID() }

// Shared reports whether other servers write to the same store.
func (v *Verbs) Shared() bool { return v.store.Shared() }

// Repair writes the missing allocation records of the named object: an earlier version stored the object without them,
// or a client deleted them. Properties that another object has taken stay with that object.
func (v *Verbs) Repair(ctx context.Context, c *Call) error { return v.allocations.repair(ctx, c) }

// Free deletes a record without an owner, unless it has changed since the revision.
func (v *Verbs) Free(ctx context.Context, prefix, name string, revision int64) error {
	_, err := v.store.Delete(ctx, prefix+"/"+name, revision)
	return err
}

// Leaked reports whether the record under prefix and name is for a property that the call's object does not have.
func (v *Verbs) Leaked(c *Call, prefix, name string) (bool, error) {
	return v.allocations.leaked(c, prefix, name)
}
