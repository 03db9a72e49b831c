package config

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Kubelet configures the connections to kubelets, for logs of pods, commands in containers, ports and proxies.
type Kubelet struct {
	// ClientCertFile and ClientKeyFile are the server's client certificate for kubelets. They are read again for each
	// new connection. Without them the server presents a certificate of its own authority, as user
	// kube-apiserver-kubelet-client of the group system:masters.
	ClientCertFile, ClientKeyFile string
	// AuthorityFile has the authorities that sign the serving certificates of kubelets. Without it any is believed, as
	// in Kubernetes.
	AuthorityFile string
	// Port is the port of kubelets without a port in their Node, 10250 by default.
	Port uint
	// AddressTypes are the address types of a Node for its kubelet, in order of preference:
	// Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP if empty.
	AddressTypes []string
	// Timeout bounds how long connecting to a kubelet takes, 5 seconds if zero.
	Timeout time.Duration
	// MaxBytesPerSecond bounds the data of one connection to a kubelet, pod or service in each direction; zero means no
	// bound.
	MaxBytesPerSecond int64
	// UpgradeNeedsCreate requires the permission "create" of pods/exec, pods/attach and pods/portforward also for GET
	// requests, which clients with WebSockets send: Kubernetes' feature gate
	// AuthorizePodWebsocketUpgradeCreatePermission. Nil means true, unless a release before 1.35 is emulated.
	UpgradeNeedsCreate *bool
	// TranslateStreams speaks SPDY with kubelets for clients that speak WebSockets: kube's feature gate
	// TranslateStreamCloseWebsocketRequests. Nil is true.
	TranslateStreams *bool
	// TunnelPorts takes WebSockets for portforward: kube's feature gate PortForwardWebsockets. Nil is true.
	TunnelPorts *bool
	// ExtendWebSockets forwards WebSockets to kubelets that declare support for them: Kubernetes' feature gate
	// ExtendWebSocketsToKubelet. Nil means true, unless a release before 1.36 is emulated.
	ExtendWebSockets *bool
	// SplitLogs lets clients request only stdout or stderr of a log: Kubernetes' feature gate PodLogsQuerySplitStreams.
	SplitLogs bool
}

// The defaults of connections to kubelets are kube-apiserver's.
const (
	defaultKubeletPort    = uint(10250)
	defaultKubeletTimeout = 5 * time.Second
)

// defaultAddressTypes returns all types of addresses, in kube-apiserver's order of preference.
func defaultAddressTypes() []string {
	return []string{
		string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
		string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
	}
}

func (c *Kubelet) setDefaults(e kinds.Emulation) {
	c.Port = cmp.Or(c.Port, defaultKubeletPort)
	c.Timeout = cmp.Or(c.Timeout, defaultKubeletTimeout)
	if len(c.AddressTypes) == 0 {
		c.AddressTypes = defaultAddressTypes()
	}
	c.UpgradeNeedsCreate = cmp.Or(c.UpgradeNeedsCreate, new(e.AtLeast(35)))
	c.ExtendWebSockets = cmp.Or(c.ExtendWebSockets, new(e.AtLeast(36)))
	c.TranslateStreams = cmp.Or(c.TranslateStreams, new(true))
	c.TunnelPorts = cmp.Or(c.TunnelPorts, new(true))
}

// gates are the feature gates.
func (c *Kubelet) gates() map[string]any {
	return map[string]any{
		"AuthorizePodWebsocketUpgradeCreatePermission": &c.UpgradeNeedsCreate,
		"TranslateStreamCloseWebsocketRequests":        &c.TranslateStreams,
		"PortForwardWebsockets":                        &c.TunnelPorts,
		"ExtendWebSocketsToKubelet":                    &c.ExtendWebSockets,
		"PodLogsQuerySplitStreams":                     &c.SplitLogs,
	}
}

func (c *Kubelet) settings() []Setting {
	return []Setting{
		{
			Name:  "kubelet-client-certificate",
			Help:  "client certificate for requests to kubelets, PEM (default: a generated one)",
			Value: &c.ClientCertFile,
		},
		{Name: "kubelet-client-key", Help: "key of --kubelet-client-certificate, PEM", Value: &c.ClientKeyFile},
		{
			Name:  "kubelet-certificate-authority",
			Help:  "authorities of the serving certificates of kubelets, PEM (default: any certificate is accepted)",
			Value: &c.AuthorityFile,
		},
		{Name: "kubelet-port", Help: "port of kubelets, if the Node has none", Value: &c.Port, Default: defaultKubeletPort},
		{
			Name:  "kubelet-preferred-address-types",
			Help:  "address types of a Node for its kubelet, in order of preference",
			Value: &c.AddressTypes, Default: defaultAddressTypes(),
		},
		{
			Name: "kubelet-timeout", Help: "timeout for connecting to a kubelet",
			Value: &c.Timeout, Default: defaultKubeletTimeout,
		},
		{
			Name:  "max-connection-bytes-per-sec",
			Help:  "bytes per second of one connection to a kubelet, pod or service in each direction, 0 for no limit",
			Value: &c.MaxBytesPerSecond,
		},
	}
}

func (c *Kubelet) validate(p *problems) {
	if (c.ClientCertFile == "") != (c.ClientKeyFile == "") {
		p.add("--kubelet-client-certificate and --kubelet-client-key go together: give both or none")
	}
	if c.Port > 65535 {
		p.add("--kubelet-port %d is not a port: use one from 1 to 65535", c.Port)
	}
	if c.Timeout < 0 {
		p.add("--kubelet-timeout %s is negative: use a duration such as 5s", c.Timeout)
	}
	if c.MaxBytesPerSecond < 0 {
		p.add("--max-connection-bytes-per-sec %d is negative: use 0 for no limit", c.MaxBytesPerSecond)
	}
}
