// Package kubelet connects clients to nodes: logs of pods, exec, attach and port-forward, and proxies to pods, services
// and nodes.
//
// Package rest calls admission for such a request (as CONNECT, with the options from the query), and then the function
// for the subresource, from the table of Part. The function reads the objects, finds the address (way.pod, way.node,
// way.service), and passes the request to Kubernetes' own proxies: clients hang unless an upgrade is forwarded,
// translated from WebSockets to SPDY, or tunnelled exactly as kube-apiserver does.
//
// A request runs in its client's goroutine and in goroutines that copy its data, which end with it. The types are safe
// for concurrent use.
package kubelet

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	proxymetrics "k8s.io/apiserver/pkg/util/proxy/metrics"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/rest"
)

// Settings configure the connections to kubelets.
type Settings struct {
	// CertFile and KeyFile are the client certificate for kubelets; empty means the server's own, if it has one.
	CertFile, KeyFile string
	// CAFile is a file with the authorities of kubelets' certificates; "" accepts every certificate, as in Kubernetes.
	CAFile string
	// Port is the port of kubelets with a Node that sets none.
	Port uint
	// AddressTypes are the types of node addresses, in order of preference.
	AddressTypes []string
	// Timeout bounds the connection to a kubelet.
	Timeout time.Duration
	// BytesPerSecond limits a connection in each direction; 0 means no limit.
	BytesPerSecond int64
	// Loopback allows loopback addresses of kubelets.
	Loopback bool
	// Simulation answers for simulated nodes; may be nil.
	Simulation Simulation
	// Local answers for pods that are programs of clients; may be nil.
	Local Local

	Gates
}

// Gates are kube's feature gates.
type Gates struct {
	// UpgradeNeedsCreate requires the permission create for exec, attach or portforward by GET:
	// AuthorizePodWebsocketUpgradeCreatePermission.
	UpgradeNeedsCreate bool
	// Translate translates WebSockets of clients to SPDY for the kubelet: TranslateStreamCloseWebsocketRequests.
	Translate bool
	// Tunnel tunnels SPDY for portforward in WebSockets: PortForwardWebsockets.
	Tunnel bool
	// Extend leaves both to kubelets that declare the feature: ExtendWebSocketsToKubelet.
	Extend bool
	// SplitLogs lets clients request one stream of a log: PodLogsQuerySplitStreams.
	SplitLogs bool
}

// Metrics returns the name prefixes of the metrics of Kubernetes' proxies, in the global registry.
func Metrics() []string {
	return []string{"apiserver_stream_t", "apiserver_websocket_streaming_requests_"}
}

// Part provides the connections to nodes.
func Part(s Settings) part.Part {
	var y *connector
	return part.Part{
		Name: "the way to nodes",
		Handlers: func(h *part.Host) part.Handlers {
			y = &connector{settings: s, authorizer: h.Authorizer, metrics: newMetrics()}
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

func (y *connector) connections() map[string]rest.Connection {
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
