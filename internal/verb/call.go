package verb

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Call is one request to one resource.
type Call struct {
	Snapshot    *catalog.Snapshot
	Resource    *catalog.Resource
	Version     *catalog.Version
	Namespace   string // "" for cluster-scoped kinds and across all namespaces
	Name        string // "" for collections
	Subresource string
	Verb        string
	User        user.Info
	// Metadata is true of a call that changes nothing but metadata. It works on an object in the version in which it
	// is stored and leaves it there, so that no conversion webhook is asked. Deletions in process do so too.
	Metadata bool
	// SkipUnreadable is true of a list that leaves out, with a warning, what cannot be read.
	SkipUnreadable bool
	// Visible is what a list or watch shows; nil is everything.
	Visible request.Visibility
	// Agent is the client's program, the field manager of those who name none.
	Agent string
	// Audit is what is recorded of the request that the call is for; nil if it is not, and in process.
	Audit request.Record
	// Secrecy is what of the objects the user may not read; set by Conceal.
	Secrecy secrecy.Secrecy

	inProcess bool           // made by Verbs.Call
	admitted  bool           // admission has been asked about what leads to this write, and is not about the write
	applies   bool           // the write is a server-side apply
	dryRun    bool           // the write ends where it would be committed
	asStored  bool           // Version is the one in which the object is stored, and stays it
	documents []string       // in the request's body, as they were sent (codec.Documents)
	sequence  store.Sequence // among the writes to a kind whose rules look at others; set by refresh
	// through is the subresource whose own kind of object stands for the call's object in admission ("scale"), usually
	// "".
	through string
}

// GroupResource returns the resource as errors name it.
func (c *Call) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural}
}

// Kind returns the kind of the call's objects in its version.
func (c *Call) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.Resource.Group, Version: c.Version.Name, Kind: c.Resource.Kind}
}

// kindOf is the kind that an error about obj names: the one that the object says it is.
func (c *Call) kindOf(obj object.Object) schema.GroupKind {
	apiVersion := object.String(obj, "apiVersion")
	if c.Resource.Secondary {
		apiVersion = c.Resource.APIVersion(c.Resource.Storage) // whose rules the error comes from
	}
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return schema.GroupKind{Group: gv.Group, Kind: object.String(obj, "kind")}
}

// Strategy returns what the kind checks and sets beyond its schema, for objects of the call's version; nil if nothing.
func (c *Call) Strategy() *catalog.Strategy { return c.Resource.StrategyFor(c.Version) }

// Target returns the name by which handlers of some kinds are found: "pods/eviction",
// "tokenreviews.authentication.k8s.io".
func (c *Call) Target() string {
	if c.Subresource == "" {
		return c.Resource.Qualified()
	}
	return c.Resource.Qualified() + "/" + c.Subresource
}

// canonicalize brings an object that has been validated into the form in which it is stored.
func (c *Call) canonicalize(obj object.Object) {
	delete(object.Meta(obj), "selfLink")
	if rules := c.Strategy(); rules != nil && rules.Store != nil {
		rules.Store(obj)
	}
}

// APIVersion returns what objects of the call's version say of themselves.
func (c *Call) APIVersion() string { return c.Resource.APIVersion(c.Version) }

// key returns where an object lives in the store.
func (c *Call) key(name string) string {
	if c.Namespace == "" {
		return c.Resource.Prefix + "/" + name
	}
	return c.Resource.Prefix + "/" + c.Namespace + "/" + name
}

// ttl is how long the object lives after each write; 0 means forever.
func (c *Call) ttl() time.Duration {
	if c.Resource.Strategy == nil {
		return 0
	}
	return c.Resource.Strategy.TTL
}

// ServerUser is who the server is where Kubernetes has kube-apiserver write by itself. Policies and webhooks may know
// it by its name.
func ServerUser() user.Info {
	return &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	}
}

// storage is the version in which the call stores objects.
func (c *Call) storage() *catalog.Version {
	if c.asStored {
		return c.Version
	}
	return c.Resource.Storage
}

// Call returns a call in process, as user who, for the named resource in its storage version, or an error if it is not
// in the catalog. Unserved resources can be called too: objects of a dying definition must still be deleted.
func (r *Reader) Call(gr catalog.GroupResource, namespace, name string, who user.Info) (*Call, error) {
	snap := r.catalog.Snapshot()
	res := snap.Resource(gr.Group, gr.Resource)
	if res == nil {
		return nil, NotServed()
	}
	return &Call{
		Snapshot: snap, Resource: res, Version: res.Storage, Namespace: namespace, Name: name, User: who,
		Agent: who.GetName(), inProcess: true,
	}, nil
}
