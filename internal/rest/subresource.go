package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Subresources that take something else than the object they are below: pods/binding and pods/eviction act on the
// object, and those that would reach into a node say that none is there.

// other chooses the function that answers for such a subresource.
func (s *Server) other(
	sub *catalog.Subresource, c *Call, info *request.Info,
) (func(http.ResponseWriter, *http.Request, *Call) error, error) {
	switch sub.Name {
	case "binding":
		return s.serveBinding, nil
	case "eviction":
		return s.serveEviction, nil
	case "log":
		return s.serveNoNode, nil
	case "exec", "attach", "portforward", "proxy":
		return s.serveConnect(sub, info), nil
	}
	return nil, c.methodNotSupported(info.Verb)
}

// readOther reads the body of a POST to a subresource into its Go type, and asks admission about it: first who may
// change it, then, when check finds nothing wrong with into, who judges it. What comes of it is then the server's own
// doing, about which admission is not asked. A body of one of the older versions is as good.
func (s *Server) readOther(
	r *http.Request, c *Call, kind schema.GroupVersionKind, into any, check func() error, older ...string,
) (*metav1.CreateOptions, error) {
	ctx := r.Context()
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	options, err := createOptions(r)
	if err != nil {
		return nil, err
	}
	obj, problems, err := decodeBody(ctx, body, r.Header.Get("Content-Type"), true, kind, func() any { return into })
	if err != nil {
		return nil, err
	}
	if got := kindOf(obj); got.GroupKind() == kind.GroupKind() && slices.Contains(older, got.Version) {
		obj["apiVersion"] = kind.GroupVersion().String()
	}
	if err := s.sameKind(obj, kind); err != nil {
		return nil, err
	}
	if problems, err = readInto(obj, into, kind, body, r.Header.Get("Content-Type"), problems); err != nil {
		return nil, err
	}
	if err := c.reportAs(ctx, kind, obj, problems, fieldValidation(options.FieldValidation)); err != nil {
		return nil, err
	}
	if err := matchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	a := s.askedOther(ctx, c, kind, options, obj)
	if err := s.Admit.Mutate(ctx, a); err != nil {
		return nil, err
	}
	if a.Changed() {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Object, into); err != nil {
			return nil, err
		}
	}
	if err := check(); err != nil {
		return nil, err
	}
	c.admitted = true
	return options, s.Admit.Validate(ctx, a)
}

// askedOther is what admission is asked about the creation of obj, which is of another kind than the call's resource.
func (s *Server) askedOther(
	ctx context.Context, c *Call, kind schema.GroupVersionKind, o *metav1.CreateOptions, obj Object,
) *admit.Attributes {
	a := s.admissionAttributes(ctx, c, admit.Create, named(c, obj), o, isDryRun(o.DryRun))
	a.Kind, a.Object = kind, obj
	a.Convert = func(_ context.Context, obj Object, _, _ *catalog.Version) (Object, error) { return obj, nil }
	a.Normalize = func(*catalog.Version, Object) error { return nil }
	return a
}

// writeSuccess answers a POST to a subresource that has no object to show.
func writeSuccess(w http.ResponseWriter, r *http.Request) error {
	media, err := negotiateScale(r) // a document of a built-in group, and nothing else
	if err != nil {
		return err
	}
	doc, err := successful(metav1.Status{Code: http.StatusCreated})
	if err != nil {
		return err
	}
	return writeDocument(w, r, http.StatusCreated, doc, media, &metav1.Status{})
}

// successful returns the JSON of a Status that says so, its fields in the order that Kubernetes has them.
func successful(s metav1.Status) ([]byte, error) {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Status = metav1.StatusSuccess
	return json.Marshal(&s)
}

// serveNoNode answers for what a kubelet would do: a pod that no node has taken has no logs and no processes, and
// there is no way to a node that has one.
func (s *Server) serveNoNode(w http.ResponseWriter, r *http.Request, c *Call) error {
	ctx := r.Context()
	if c.Subresource == "proxy" {
		_, name, _, valid := utilnet.SplitSchemeNamePort(c.Name)
		if !valid {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", c.Resource.Singular, c.Name))
		}
		to := *c
		to.Name = name
		c = &to
	}
	e, err := s.current(ctx, c)
	if err != nil {
		return err
	}
	obj, err := s.fromEntry(c, e)
	if err != nil {
		return err
	}
	switch c.Resource.Plural {
	case "services":
		return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", c.Name))
	case "nodes":
		return noKubelet(c.Name)
	}
	spec, _ := obj["spec"].(Object)
	status, _ := obj["status"].(Object)
	node, podIP := object.String(spec, "nodeName"), object.String(status, "podIP")
	switch {
	case node == "" && c.Subresource == "log":
		w.WriteHeader(http.StatusNoContent)
		return nil
	case c.Subresource == "proxy" && podIP == "":
		return apierrors.NewBadRequest("address not allowed")
	case node == "":
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", c.Name))
	case s.View.Collection("minions").Snapshot().Get("", node) == nil:
		return apierrors.NewNotFound(c.groupResource(), node) // "pods", as in Kubernetes
	}
	return noKubelet(node)
}

func noKubelet(node string) error {
	return apierrors.NewInternalError(
		fmt.Errorf("error dialing backend: node %q is not served: this server has no way to kubelets", node))
}
