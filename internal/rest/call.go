package rest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
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
	// Warn receives sentences for the client; nil drops them.
	Warn func(string)

	inProcess bool           // made by Server.Call
	admitted  bool           // admission has been asked about what leads to this write, and is not about the write
	applies   bool           // the write is a server-side apply
	dryRun    bool           // the write ends where it would be committed
	asStored  bool           // Version is the one in which the object is stored, and stays it
	sequence  store.Sequence // among the writes to a kind whose rules look at others; set by refresh
	agent     string         // User-Agent, the field manager of those who name none
	// through is the subresource whose own kind of object stands for the call's object in admission ("scale"), usually
	// "".
	through string
}

// Call returns a call in process, as user who, for the named resource in its storage version, or an error if it is not
// in the catalog. Unserved resources can be called too: objects of a dying definition must still be deleted.
func (s *Server) Call(gr catalog.GroupResource, namespace, name string, who user.Info) (*Call, error) {
	snap := s.Catalog.Snapshot()
	res := snap.Resource(gr.Group, gr.Resource)
	if res == nil {
		return nil, notServed()
	}
	return &Call{
		Snapshot: snap, Resource: res, Version: res.Storage, Namespace: namespace, Name: name, User: who,
		agent: who.GetName(), inProcess: true,
	}, nil
}

func (c *Call) warn(ctx context.Context, text string) {
	if c.Warn != nil {
		c.Warn(text)
		return
	}
	request.Warn(ctx, text)
}

func (c *Call) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural}
}

func (c *Call) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.Resource.Group, Version: c.Version.Name, Kind: c.Resource.Kind}
}

// kindOf is the kind that an error about obj names: the one that the object says it is.
func (c *Call) kindOf(obj Object) schema.GroupKind {
	apiVersion := object.String(obj, "apiVersion")
	if c.Resource.Secondary {
		apiVersion = c.Resource.APIVersion(c.Resource.Storage) // whose rules the error comes from
	}
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return schema.GroupKind{Group: gv.Group, Kind: object.String(obj, "kind")}
}

// strategy returns what the kind checks and sets beyond its schema, for objects of the call's version; nil if nothing.
func (c *Call) strategy() *catalog.Strategy { return c.Resource.StrategyFor(c.Version) }

// canonicalize brings an object that has been judged into the form in which it is stored.
func (c *Call) canonicalize(obj Object) {
	delete(object.Meta(obj), "selfLink")
	if rules := c.strategy(); rules != nil && rules.Store != nil {
		rules.Store(obj)
	}
}

func (c *Call) apiVersion() string { return c.Resource.APIVersion(c.Version) }

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

func (s *Server) env(c *Call) catalog.Env {
	return catalog.Env{Now: s.Now(), Snapshot: c.Snapshot, User: c.User}
}
