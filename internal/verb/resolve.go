package verb

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
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
func (r *Reader) Resolve(ctx context.Context, info *request.Info, by Client) (*Call, error) {
	c := r.lookup(info, by)
	if c == nil {
		if _, err := r.view.Fresh(ctx); err != nil {
			return nil, err
		}
		if c = r.lookup(info, by); c == nil {
			return nil, NotServed()
		}
	}
	return c, nil
}

func (r *Reader) lookup(info *request.Info, by Client) *Call {
	snap := r.catalog.Snapshot()
	res, ver := snap.Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return nil
	}
	c := &Call{
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

// NotServed is the error for an unknown path; kubectl prints its message word for word.
func NotServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}
