package read

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb/call"
)

// Client is the client's part of a call.
type Client struct {
	User user.Info
	// Agent is the client's program name, the default field manager.
	Agent string
	// Audit records details of the request; nil if nothing is recorded.
	Audit request.Record
	// Visible limits the objects that a list or watch shows; nil shows all.
	Visible request.Visibility
}

// Resolve finds the resource that a request names. Another replica may just have created an unknown resource, so
// Resolve catches up with the log and looks again.
func (r *Reader) Resolve(ctx context.Context, info *request.Info, by Client) (*call.Call, error) {
	c := r.lookup(info, by)
	if c == nil {
		if _, err := r.view.Fresh(ctx); err != nil {
			return nil, err
		}
		if c = r.lookup(info, by); c == nil {
			return nil, call.NotServed()
		}
	}
	return c, nil
}

func (r *Reader) lookup(info *request.Info, by Client) *call.Call {
	snap := r.catalog.Snapshot()
	res, ver := snap.Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return nil
	}
	c := &call.Call{
		Snapshot: snap, Resource: res, Version: ver, Namespace: info.Namespace, Name: info.Name,
		Subresource: info.Subresource, Verb: info.Verb, User: by.User, Agent: by.Agent, Audit: by.Audit,
		Visible: by.Visible,
	}
	switch {
	case res.Namespaced && c.Namespace == "" && info.Verb != "list" && info.Verb != "watch" &&
		(res.Custom() || res.Virtual || c.Name != ""):
		return nil // only list and watch work across namespaces
	case !res.Namespaced && c.Namespace != "" && !res.IsNamespace():
		return nil
	case !res.Namespaced:
		c.Namespace = ""
	}
	return c
}

// Call returns an in-process call, as user by, for the named resource in its storage version. It returns an error if
// the catalog lacks the resource. Unserved resources are included, because the objects of a deleted definition must
// still be removed.
func (r *Reader) Call(gr catalog.GroupResource, namespace, name string, by user.Info) (*call.Call, error) {
	snap := r.catalog.Snapshot()
	res := snap.Resource(gr.Group, gr.Resource)
	if res == nil {
		return nil, call.NotServed()
	}
	return &call.Call{
		Snapshot: snap, Resource: res, Version: res.Storage, Namespace: namespace, Name: name, User: by,
		Agent: by.GetName(), InProcess: true,
	}, nil
}
