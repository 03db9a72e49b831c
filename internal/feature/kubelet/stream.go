package kubelet

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/util/proxy"
	proxymetrics "k8s.io/apiserver/pkg/util/proxy/metrics"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// extends is the feature of nodes whose kubelets speak WebSockets in all versions themselves.
const extends = "ExtendWebSocketsToKubelet"

// serveExec connects a client with a command in a container.
func (y *way) serveExec(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error {
	o := options.(*corev1.PodExecOptions)
	streams := proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
	return y.serveStreams(w, r, v, c, wish{o.Container, streams, o.Command})
}

// serveAttach connects a client with what runs in a container.
func (y *way) serveAttach(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error {
	o := options.(*corev1.PodAttachOptions)
	streams := proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
	return y.serveStreams(w, r, v, c, wish{o.Container, streams, nil})
}

// wish is what a client wants to be connected with.
type wish struct {
	container string // "" for the only one
	streams   proxy.Options
	command   []string // nil for what runs already
}

// query is how kubelets are asked for it.
func (s *wish) query() url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{
		corev1.ExecStdinParam: s.streams.Stdin, corev1.ExecStdoutParam: s.streams.Stdout,
		corev1.ExecStderrParam: s.streams.Stderr, corev1.ExecTTYParam: s.streams.Tty,
	} {
		if set {
			query.Set(name, "1")
		}
	}
	if len(s.command) > 0 {
		query["command"] = s.command
	}
	return query
}

// serveStreams passes exec and attach on. A client may speak SPDY, or WebSockets in versions that kubelets have always
// known, which are passed on as they are; or WebSockets in version 5, which can say that the input has ended: they are
// translated to SPDY unless the kubelet knows them.
func (y *way) serveStreams(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, asked wish) error {
	if err := y.mayCreate(r, c); err != nil {
		return err
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	name, err := container(asked.container, pod)
	if err != nil {
		return err
	}
	node, err := y.kubelet(r.Context(), v, c, pod)
	if err != nil {
		return err
	}
	where := &url.URL{
		Scheme: "https", Host: node.address(), RawQuery: asked.query().Encode(),
		Path: fmt.Sprintf("/%s/%s/%s/%s", c.Subresource, pod.Namespace, pod.Name, name),
	}
	handler := http.Handler(y.upgrader(where, y.verified, true))
	if y.settings.Translate && !y.extended(r, c, node) {
		translator := proxy.NewStreamTranslatorHandler(where, y.verified, y.settings.BytesPerSecond, asked.streams)
		handler = proxy.NewTranslatingHandler(handler, translator, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
	}
	w, r, cancel := leaving(w, r)
	defer cancel()
	handler.ServeHTTP(w, r)
	return nil
}

// servePortForward connects a client with ports of a pod, by SPDY, which may be carried in a WebSocket.
func (y *way) servePortForward(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error {
	if err := y.mayCreate(r, c); err != nil {
		return err
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	node, err := y.kubelet(r.Context(), v, c, pod)
	if err != nil {
		return err
	}
	query := url.Values{}
	if ports := options.(*corev1.PodPortForwardOptions).Ports; len(ports) > 0 {
		text := make([]string, len(ports))
		for i, port := range ports {
			text[i] = strconv.Itoa(int(port))
		}
		query.Set(corev1.PortHeader, strings.Join(text, ","))
	}
	where := &url.URL{
		Scheme: "https", Host: node.address(), RawQuery: query.Encode(),
		Path: fmt.Sprintf("/portForward/%s/%s", pod.Namespace, pod.Name),
	}
	handler := http.Handler(y.upgrader(where, y.verified, true))
	if y.settings.Tunnel && !y.extended(r, c, node) {
		handler = proxy.NewTranslatingHandler(handler, proxy.NewTunnelingHandler(handler),
			wsstream.IsWebSocketRequestWithTunnelingProtocol)
	}
	w, r, cancel := leaving(w, r)
	defer cancel()
	handler.ServeHTTP(w, r)
	return nil
}

// extended reports whether the kubelet itself speaks what else would be translated here.
func (y *way) extended(r *http.Request, c *verb.Call, node *endpoint) bool {
	extended := y.settings.Extend && slices.Contains(node.features, extends)
	by := "translated_at_apiserver"
	if extended {
		by = "proxied_to_kubelet"
	}
	proxymetrics.IncWebSocketStreamingRequest(r.Context(), c.Subresource, by)
	return extended
}

// mayCreate asks whether the user may create what a GET upgrades to: browsers cannot POST for a WebSocket, and a
// permission to read shall not be enough to run commands.
func (y *way) mayCreate(r *http.Request, c *verb.Call) error {
	if !y.settings.UpgradeNeedsCreate || c.Verb == "create" {
		return nil
	}
	if y.authorizer == nil {
		return apierrors.NewInternalError(errors.New("no authorizer available"))
	}
	decision, err := y.authorizer.Authorize(r.Context(), c.User, &request.Info{
		Verb: "create", IsResource: true, APIPrefix: "api", Group: c.Resource.Group, Version: c.Version.Name,
		Resource: c.Resource.Plural, Subresource: c.Subresource, Namespace: c.Namespace, Name: c.Name,
		Path: r.URL.Path,
	})
	switch {
	case err != nil:
		return err
	case !decision.Allowed():
		return apierrors.NewForbidden(c.GroupResource(), c.Name, errors.New(decision.Reason))
	}
	return nil
}
