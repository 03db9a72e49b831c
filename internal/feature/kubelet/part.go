// Package kubelet is the way to nodes: logs of pods, commands in their containers, their ports, and proxies to pods,
// services and nodes.
//
// It stands beside package rest, which asks admission about such a request (as CONNECT, with the options that the query
// says) and then calls the function for the subresource from the table that Part brings. That reads the objects, finds
// out where to send the request (way.pod, way.node, way.service), and hands it to Kubernetes' own proxies: an upgrade
// must be passed on, translated from WebSockets to SPDY or tunnelled exactly as kube-apiserver does, or clients hang.
//
// A request runs in the goroutine of its client and in those that copy its bytes, which end with it. The types are safe
// for concurrent use.
package kubelet

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	proxymetrics "k8s.io/apiserver/pkg/util/proxy/metrics"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/rest"
)

// What is so if nothing is said: kube-apiserver's.
const (
	DefaultPort    = uint(10250)
	DefaultTimeout = 5 * time.Second
)

// AddressTypes returns all types of addresses that there are, in the order in which Kubernetes wants them.
func AddressTypes() []string {
	return []string{string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
		string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP)}
}

// Settings say how kubelets are reached. Zero values of Port, AddressTypes and Timeout mean the defaults.
type Settings struct {
	// CertFile and KeyFile are the client certificate that kubelets see; none for the server's own, if it has one.
	CertFile, KeyFile string
	// CAFile has the authorities that sign the certificates of kubelets; "" believes any, as Kubernetes does.
	CAFile string
	// Port is that of kubelets whose Node does not say it.
	Port uint
	// AddressTypes are the types of addresses of a Node, the most wanted first.
	AddressTypes []string
	// Timeout bounds how long it takes to reach a kubelet.
	Timeout time.Duration
	// BytesPerSecond bounds what a connection carries in each direction; 0 does not.
	BytesPerSecond int64
	// Local lets kubelets have loopback addresses.
	Local bool
	// Simulation answers for nodes without kubelets; nil if there are none.
	Simulation Simulation

	Gates
}

// Gates are kube's feature gates.
type Gates struct {
	// UpgradeNeedsCreate has those who want exec, attach or portforward by a GET hold the permission to create it too:
	// AuthorizePodWebsocketUpgradeCreatePermission.
	UpgradeNeedsCreate bool
	// Translate speaks SPDY with the kubelet for clients that speak WebSockets: TranslateStreamCloseWebsocketRequests.
	Translate bool
	// Tunnel carries SPDY for portforward in WebSockets: PortForwardWebsockets.
	Tunnel bool
	// Extend leaves both to kubelets that say that they can do it: ExtendWebSocketsToKubelet.
	Extend bool
	// SplitLogs lets clients ask for one of the streams of a log: PodLogsQuerySplitStreams.
	SplitLogs bool
}

// Metrics returns how the names of what Kubernetes' proxies count begin, in the registry that libraries share.
func Metrics() []string {
	return []string{"apiserver_stream_t", "apiserver_websocket_streaming_requests_"}
}

// Part brings the way to nodes.
func Part(s Settings) part.Part {
	s.Port, s.Timeout = cmp.Or(s.Port, DefaultPort), cmp.Or(s.Timeout, DefaultTimeout)
	if len(s.AddressTypes) == 0 {
		s.AddressTypes = AddressTypes()
	}
	var y *way
	return part.Part{
		Name: "the way to nodes",
		Handlers: func(h *part.Host) part.Handlers {
			y = &way{settings: s, authorizer: h.Authorizer, metrics: newMetrics()}
			return part.Handlers{Connections: y.connections()}
		},
		Collectors: func(*part.Host) []prometheus.Collector {
			proxymetrics.Register()
			return []prometheus.Collector{y.metrics.insecure, y.metrics.failures}
		},
		Start: func(_ context.Context, h *part.Host) error {
			var own func() *tls.Certificate
			if h.Certificates != nil {
				own = h.Certificates.KubeletClient
			}
			if err := y.open(h.Egress.Dial(egress.Cluster), own); err != nil {
				return err
			}
			h.OnStop(func() error { y.close(); return nil })
			return nil
		},
	}
}

func (y *way) connections() map[string]rest.Connection {
	return map[string]rest.Connection{
		"pods/log":         {Serve: y.serveLog},
		"pods/exec":        {Serve: y.serveExec, Options: execOptions},
		"pods/attach":      {Serve: y.serveAttach, Options: attachOptions},
		"pods/portforward": {Serve: y.servePortForward, Options: portForwardOptions},
		"pods/proxy":       {Serve: y.servePodProxy, Options: podProxyOptions, Proxy: true},
		"services/proxy":   {Serve: y.serveServiceProxy, Options: serviceProxyOptions, Proxy: true},
		"nodes/proxy":      {Serve: y.serveNodeProxy, Options: nodeProxyOptions, Proxy: true},
	}
}
