package config

import (
	"cmp"
	"net/netip"
	"strconv"
	"time"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Aggregation configures the connections to the servers of APIServices.
type Aggregation struct {
	// ProxyClientCertFile and ProxyClientKeyFile are the client certificate that allows this server to name the user of
	// a request to such a server. The files are read again when they change. Without them the server makes its own
	// certificate, and the ConfigMap kube-system/extension-apiserver-authentication contains its authority.
	ProxyClientCertFile, ProxyClientKeyFile string
	// Routing sends requests to the ready endpoints of a service in place of its cluster IP, so that no network with
	// cluster IPs is needed; nil means true.
	Routing *bool
	// RejectRedirects answers 502 where such a server sends the client elsewhere; nil is true.
	RejectRedirects *bool
	// NamespaceGrace is how long the deletion of a namespace waits for a server that does not answer and may have
	// objects in it, 30 seconds by default; a negative value means no limit, as in Kubernetes. After that the namespace
	// goes, and a ConfigMap in kube-system records the server's leftovers.
	NamespaceGrace time.Duration
	// PeerCAFile has the authorities of the serving certificates of the other servers that share the etcd, PEM. With
	// it, the server forwards a request for an unknown resource to a server that has the resource, and aggregated
	// discovery lists the resources of all servers. The file is read again when it changes.
	PeerCAFile string
	// PeerAdvertiseIP and PeerAdvertisePort are the address of this server for the others; the default is its address
	// for nodes.
	PeerAdvertiseIP, PeerAdvertisePort string
	// PeerProxy is Kubernetes' feature gate UnknownVersionInteroperabilityProxy: whether servers publish their
	// addresses to each other and use the three settings above. Nil means true, unless a release before 1.36 is
	// emulated.
	PeerProxy *bool
}

const defaultNamespaceGrace = 30 * time.Second

func (c *Aggregation) setDefaults(e kinds.Emulation) {
	c.NamespaceGrace = cmp.Or(c.NamespaceGrace, defaultNamespaceGrace)
	c.Routing = cmp.Or(c.Routing, new(true))
	c.RejectRedirects = cmp.Or(c.RejectRedirects, new(true))
	c.PeerProxy = cmp.Or(c.PeerProxy, new(e.AtLeast(36)))
}

func (c *Aggregation) settings(command Command) []Setting {
	if command == KubeAPIServer && c.Routing == nil {
		c.Routing = new(bool) // kube-apiserver's default
	}
	return []Setting{
		{
			Name:  "proxy-client-cert-file",
			Help:  "client certificate for requests to aggregated servers, PEM (default: a generated one)",
			Value: &c.ProxyClientCertFile,
		},
		{
			Name: "proxy-client-key-file", Help: "key of --proxy-client-cert-file, PEM",
			Value: &c.ProxyClientKeyFile,
		},
		{
			Name:  "enable-aggregator-routing",
			Help:  "send requests for aggregated APIs to the endpoints of their services instead of cluster IPs",
			Value: &c.Routing,
		},
		{
			Name:  "aggregator-reject-forwarding-redirect",
			Help:  "answer 502 where an aggregated server redirects a client",
			Value: &c.RejectRedirects,
		},
		{
			Name: "namespace-deletion-grace", Only: Serve,
			Help: "how long the deletion of a namespace waits for an aggregated server that does not answer, " +
				"0 for ever as in Kubernetes; then the leftovers are recorded in a ConfigMap",
			Value: &c.NamespaceGrace, Default: defaultNamespaceGrace, Form: Bounded,
		},
		{
			Name:  "peer-ca-file",
			Help:  "authorities of the certificates of other servers on the same etcd, PEM: forward requests to them for resources that this server does not serve",
			Value: &c.PeerCAFile,
		},
		{
			Name: "peer-advertise-ip", Help: "address of this server for the other servers (default: --advertise-address)",
			Value: &c.PeerAdvertiseIP,
		},
		{
			Name: "peer-advertise-port", Help: "port of this server for the other servers (default: --secure-port)",
			Value: &c.PeerAdvertisePort,
		},
	}
}

func (c *Aggregation) validate(p *problems, e kinds.Emulation) {
	if (c.ProxyClientCertFile == "") != (c.ProxyClientKeyFile == "") {
		p.add("--proxy-client-cert-file and --proxy-client-key-file go together: give both or none")
	}
	for _, flag := range []struct{ name, value string }{
		{"--peer-ca-file", c.PeerCAFile}, {"--peer-advertise-ip", c.PeerAdvertiseIP},
		{"--peer-advertise-port", c.PeerAdvertisePort},
	} {
		if flag.value != "" && !*cmp.Or(c.PeerProxy, new(e.AtLeast(36))) {
			p.add("%s requires UnknownVersionInteroperabilityProxy feature to be turned on", flag.name)
		}
	}
	if c.PeerCAFile != "" && c.ProxyClientCertFile == "" {
		p.add("--peer-ca-file needs --proxy-client-cert-file and --proxy-client-key-file, with which this server " +
			"authenticates to the other servers")
	}
	if _, err := netip.ParseAddr(c.PeerAdvertiseIP); c.PeerAdvertiseIP != "" && err != nil {
		p.add("--peer-advertise-ip %q is not an IP address", c.PeerAdvertiseIP)
	}
	n, err := strconv.ParseUint(c.PeerAdvertisePort, 10, 16)
	if c.PeerAdvertisePort != "" && (err != nil || n == 0) {
		p.add("--peer-advertise-port %q is not a port: use one from 1 to 65535", c.PeerAdvertisePort)
	}
}
