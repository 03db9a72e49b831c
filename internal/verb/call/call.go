// Package call has Call, one request to one resource.
//
// It stands between a request and the verbs: package read resolves a request to a call, and reads and writes take it. A
// Call holds the catalog snapshot from the start of the request, so a response never mixes two states of a definition.
// It does not change and is safe for concurrent use: a method that returns a call returns a copy.
package call

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Call is one request to one resource. It does not change: the methods that return a call return a changed copy.
type Call struct {
	Snapshot    *catalog.Snapshot
	Resource    *catalog.Resource
	Version     *catalog.Version
	Namespace   string // "" for cluster-scoped kinds and across all namespaces
	Name        string // "" for collections
	Subresource string
	Verb        string
	User        user.Info
	// Metadata marks a call that changes only metadata. It works on the object in its stored version, so it needs no
	// conversion webhook. Deletions in process do so too.
	Metadata bool
	// SkipUnreadable makes a list omit unreadable objects, with a warning.
	SkipUnreadable bool
	// Visible limits the objects that a list or watch shows; nil shows all.
	Visible request.Visibility
	// Agent is the client's program name, the default field manager.
	Agent string
	// Audit records details of the client's request; nil if nothing is recorded, and for calls in process.
	Audit request.Record
	// Secrecy masks fields that the user may not read: see Conceal.
	Secrecy secrecy.Secrecy

	// InProcess is true for calls of the server itself: see read.Reader.Call.
	InProcess bool
	// Admitted is true if admission has approved the operation behind this write, and skips the write.
	Admitted bool

	asStored bool // Version is the object's stored version, and the write keeps it
}

// GroupResource returns the resource as errors name it.
func (c *Call) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural}
}

// Kind returns the kind of the call's objects in its version.
func (c *Call) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.Resource.Group, Version: c.Version.Name, Kind: c.Resource.Kind}
}

// Strategy returns the kind's checks and defaults beyond its schema, for the call's version; nil if there are none.
func (c *Call) Strategy() *catalog.Strategy { return c.Resource.StrategyFor(c.Version) }

// Target returns the key of handlers for specific kinds: "pods/eviction", "tokenreviews.authentication.k8s.io".
func (c *Call) Target() string {
	if c.Subresource == "" {
		return c.Resource.Qualified()
	}
	return c.Resource.Qualified() + "/" + c.Subresource
}

// APIVersion returns the apiVersion of objects in the call's version.
func (c *Call) APIVersion() string { return c.Resource.APIVersion(c.Version) }

// Key returns the object's key in the store.
func (c *Call) Key(name string) string {
	if c.Namespace == "" {
		return c.Resource.Prefix + "/" + name
	}
	return c.Resource.Prefix + "/" + c.Namespace + "/" + name
}

// Storage returns the version in which the call stores objects.
func (c *Call) Storage() *catalog.Version {
	if c.asStored {
		return c.Version
	}
	return c.Resource.Storage
}

// Named returns a copy of the call for another object of its resource.
func (c *Call) Named(namespace, name string) *Call {
	out := *c
	out.Namespace, out.Name = namespace, name
	return &out
}

// Under returns a copy of the call for a subresource of its object, "" for the object itself.
func (c *Call) Under(subresource string) *Call {
	out := *c
	out.Subresource = subresource
	return &out
}

// In returns a copy of the call in another version of its resource.
func (c *Call) In(v *catalog.Version) *Call {
	out := *c
	out.Version = v
	return &out
}

// Of returns a copy of the call for another resource, in its storage version and without a subresource.
func (c *Call) Of(r *catalog.Resource) *Call {
	out := *c
	out.Resource, out.Version, out.Subresource = r, r.Storage, ""
	return &out
}

// MetadataOnly returns a copy of the call that changes only metadata.
func (c *Call) MetadataOnly() *Call {
	out := *c
	out.Metadata = true
	return &out
}

// SkippingUnreadable returns a copy of the call for a list that omits unreadable objects.
func (c *Call) SkippingUnreadable() *Call {
	out := *c
	out.SkipUnreadable = true
	return &out
}

// Narrow returns the call with the fields masked that the user may not read by the permissions of a sight.
func (c *Call) Narrow(s secrecy.Roles) *Call {
	narrowed := c.Secrecy
	if narrowed.Narrow(s, c.Verb); narrowed == c.Secrecy {
		return c
	}
	out := *c
	out.Secrecy = narrowed
	return &out
}

// Masking returns a copy of the call that masks fields for its user and in the audit log.
func (c *Call) Masking(s secrecy.Secrecy) *Call {
	out := *c
	out.Secrecy = s
	if s.Fields != nil && c.Audit != nil {
		out.Audit = secrecy.NewRecord(c.Audit, s.Fields)
	}
	return &out
}

// At returns a copy of the call with another state of the catalog.
func (c *Call) At(s *catalog.Snapshot) *Call {
	out := *c
	out.Snapshot = s
	return &out
}

// Approved returns a copy of the call for the writes of an action that admission has approved.
func (c *Call) Approved() *Call {
	out := *c
	out.Admitted = true
	return &out
}

// InStored returns a copy of the call in an object's stored version, which the write keeps.
func (c *Call) InStored(v *catalog.Version) *Call {
	out := *c
	out.Version, out.asStored = v, true
	return &out
}

// VersionOf returns the version of the call's resource that an apiVersion names, or nil.
func (c *Call) VersionOf(apiVersion string) *catalog.Version {
	for _, v := range c.Resource.Versions {
		if c.Resource.APIVersion(v) == apiVersion {
			return v
		}
	}
	return nil
}
