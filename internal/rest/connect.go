package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
)

// serveConnect returns the function that answers a request to be connected to a container or a node, by whatever
// method. Admission is asked about it as Kubernetes asks, before it turns out whether there is such an object; then
// there is no node to connect to.
func (s *Server) serveConnect(sub *catalog.Subresource, info *request.Info) func(http.ResponseWriter, *http.Request,
	*Call) error {
	return func(w http.ResponseWriter, r *http.Request, c *Call) error {
		if info.Verb == "" && r.Method != http.MethodOptions {
			return c.methodNotSupported(info.Verb)
		}
		query := r.URL.Query()
		if len(query["dryRun"]) > 0 {
			return apierrors.NewBadRequest("dryRun is not supported")
		}
		if sub.Name == "proxy" {
			query.Set("path", pathBelow(info))
		}
		options, err := connectOptions(sub.Kind.Kind, query)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := s.admitConnect(r.Context(), c, sub, options); err != nil {
			return err
		}
		return s.serveNoNode(w, r, c)
	}
}

// pathBelow is the path that a proxy is to ask for: what follows after its own.
func pathBelow(info *request.Info) string {
	p := strings.Join(info.Parts[3:], "/")
	if p != "" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.HasSuffix(info.Path, "/") && !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}

// connectOptions reads the query into the kind of options that a subresource takes, without apiVersion and kind.
func connectOptions(kind string, query url.Values) (any, error) {
	truth := func(name string) (v bool) { // the rule has no errors
		values := query[name]
		_ = runtime.Convert_Slice_string_To_bool(&values, &v, nil)
		return v
	}
	switch kind {
	case "PodExecOptions":
		return &corev1.PodExecOptions{
			Stdin: truth("stdin"), Stdout: truth("stdout"), Stderr: truth("stderr"), TTY: truth("tty"),
			Container: query.Get("container"), Command: query["command"],
		}, nil
	case "PodAttachOptions":
		return &corev1.PodAttachOptions{
			Stdin: truth("stdin"), Stdout: truth("stdout"), Stderr: truth("stderr"), TTY: truth("tty"),
			Container: query.Get("container"),
		}, nil
	case "PodPortForwardOptions":
		o, ports := &corev1.PodPortForwardOptions{}, query["ports"]
		return o, metav1.Convert_Slice_string_To_Slice_int32(&ports, &o.Ports, nil)
	case "PodProxyOptions":
		return &corev1.PodProxyOptions{Path: query.Get("path")}, nil
	case "ServiceProxyOptions":
		return &corev1.ServiceProxyOptions{Path: query.Get("path")}, nil
	case "NodeProxyOptions":
		return &corev1.NodeProxyOptions{Path: query.Get("path")}, nil
	}
	return nil, fmt.Errorf("no options of kind %s", kind)
}

// admitConnect asks admission about a connection. What it changes changes nothing, as nothing comes of the connection.
func (s *Server) admitConnect(ctx context.Context, c *Call, sub *catalog.Subresource, options any) error {
	a := s.admissionAttributes(ctx, c, admit.Connect, c.Name, nil, false)
	a.Kind.Kind, a.Options = sub.Kind.Kind, nil
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(options)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	obj["apiVersion"], obj["kind"] = a.Kind.GroupVersion().String(), a.Kind.Kind
	a.Object = obj
	a.Convert = func(_ context.Context, obj Object, _, _ *catalog.Version) (Object, error) { return obj, nil }
	a.Normalize = func(_ *catalog.Version, obj Object) error {
		o, err := connectOptions(a.Kind.Kind, nil)
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, o)
	}
	if err := s.Admit.Mutate(ctx, a); err != nil {
		return err
	}
	return s.Admit.Validate(ctx, a)
}
