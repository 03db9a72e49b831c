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

// extends is the feature of nodes with kubelets that support all versions of WebSockets.
const extends = "ExtendWebSocketsToKubelet"

// serveExec connects a client with a command in a container.
func (y *connector) serveExec(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error {
	o := options.(*corev1.PodExecOptions)
	streams := proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
	return y.serveStreams(w, r, v, c, streamRequest{o.Container, streams, o.Command})
}

// serveAttach attaches a client to a running container.
func (y *connector) serveAttach(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any,
) error {
	o := options.(*corev1.PodAttachOptions)
	streams := proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
	return y.serveStreams(w, r, v, c, streamRequest{o.Container, streams, nil})
}

// streamRequest is the parsed exec or attach request.
type streamRequest struct {
	container string // "" for the only one
	streams   proxy.Options
	command   []string // nil for attach
}

// query returns the query for the kubelet.
func (s *streamRequest) query() url.Values {
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

// serveStreams forwards exec and attach. SPDY, and the WebSockets versions that every kubelet supports, are forwarded
// unchanged. WebSockets of version 5, which can signal the end of the input, are translated to SPDY unless the kubelet
// supports them.
func (y *connector) serveStreams(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, request streamRequest,
) error {
	if err := y.mayCreate(r, c); err != nil {
		return err
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	name, err := container(request.container, pod)
	if err != nil {
		return err
	}
	if y.isLocal(pod) {
		return errLocal(pod.Name)
	}
	simulated, err := y.simulatedProcess(r.Context(), v, pod, name, request.command)
	switch {
	case err != nil:
		return err
	case simulated != nil:
		return y.serveSimulated(w, r, request, simulated)
	}
	node, err := y.kubelet(r.Context(), v, c, pod)
	if err != nil {
		return err
	}
	where := &url.URL{
		Scheme: "https", Host: node.address(), RawQuery: request.query().Encode(),
		Path: fmt.Sprintf("/%s/%s/%s/%s", c.Subresource, pod.Namespace, pod.Name, name),
	}
	handler := http.Handler(y.upgrader(where, y.verified, true))
	if y.settings.Translate && !y.extended(r, c, node) {
		translator := proxy.NewStreamTranslatorHandler(where, y.verified, y.settings.BytesPerSecond, request.streams)
		handler = proxy.NewTranslatingHandler(handler, translator, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
	}
	w, r, cancel := leaving(w, r)
	defer cancel()
	handler.ServeHTTP(w, r)
	return nil
}

// servePortForward connects a client to ports of a pod, by SPDY, possibly tunnelled in a WebSocket.
func (y *connector) servePortForward(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any,
) error {
	if err := y.mayCreate(r, c); err != nil {
		return err
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	if y.isLocal(pod) {
		return y.forwardInside(w, r, pod, y.settings.Local.Dial)
	}
	simulated, err := y.isSimulated(r.Context(), v, pod)
	switch {
	case err != nil:
		return err
	case simulated:
		return y.forwardInside(w, r, pod, y.settings.Simulation.Dial)
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

// extended reports whether the kubelet itself supports the protocols that are otherwise translated here.
func (y *connector) extended(r *http.Request, c *verb.Call, node *endpoint) bool {
	extended := y.settings.Extend && slices.Contains(node.features, extends)
	by := "translated_at_apiserver"
	if extended {
		by = "proxied_to_kubelet"
	}
	proxymetrics.IncWebSocketStreamingRequest(r.Context(), c.Subresource, by)
	return extended
}

// mayCreate checks the permission to create for an upgrade by GET: browsers cannot POST for a WebSocket, and a
// permission to read must not be enough to run commands.
func (y *connector) mayCreate(r *http.Request, c *verb.Call) error {
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
