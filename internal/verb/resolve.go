package verb

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Resolve finds the resource that a request names. What this replica does not know may have been made on another one a
// moment ago, so an unknown name is looked up again after catching up with the log.
func (r *Reader) Resolve(ctx context.Context, info *request.Info, who user.Info) (*Call, error) {
	c := r.lookup(info, who)
	if c == nil {
		if _, err := r.view.Fresh(ctx); err != nil {
			return nil, err
		}
		if c = r.lookup(info, who); c == nil {
			return nil, NotServed()
		}
	}
	return c, nil
}

func (r *Reader) lookup(info *request.Info, who user.Info) *Call {
	snap := r.catalog.Snapshot()
	res, ver := snap.Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return nil
	}
	c := &Call{
		Snapshot: snap, Resource: res, Version: ver, Namespace: info.Namespace, Name: info.Name,
		Subresource: info.Subresource, Verb: info.Verb, User: who,
	}
	switch {
	case res.Namespaced && c.Namespace == "" && info.Verb != "list" && info.Verb != "watch" &&
		(res.Custom() || res.Virtual || c.Name != ""):
		return nil // only these two work across namespaces; see routed
	case !res.Namespaced && c.Namespace != "" && !res.IsNamespace():
		return nil
	case !res.Namespaced:
		c.Namespace = ""
	}
	return c
}

// NotServed is the answer to a path that names nothing: kubectl prints its message word for word.
func NotServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}
