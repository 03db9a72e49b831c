package bowsprit

import (
	"cmp"

	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/peer"
)

// AggregationConfig says how requests reach the servers that APIServices name.
type AggregationConfig struct {
	// ProxyClientCertFile and ProxyClientKeyFile are the client certificate by which those servers know that this one
	// may say who sends a request. They are read again when they change. Without them the server makes its own, and the
	// ConfigMap kube-system/extension-apiserver-authentication names its authority.
	ProxyClientCertFile, ProxyClientKeyFile string
	// Routing sends requests to the ready endpoints of a service, and not to its cluster IP; nil is true, which needs
	// no network in which cluster IPs mean something.
	Routing *bool
	// RejectRedirects answers 502 where such a server sends the client elsewhere; nil is true.
	RejectRedirects *bool
	// PeerCAFile has the authorities of the serving certificates of the other servers that share the etcd, PEM. With
	// it a request for a resource that this server does not serve goes to one that does, and aggregated discovery lists
	// what all of them serve. It is read again when it changes.
	PeerCAFile string
	// PeerAdvertiseIP and PeerAdvertisePort are where those reach this server; by default where nodes do.
	PeerAdvertiseIP, PeerAdvertisePort string
	// PeerProxy is kube's feature gate UnknownVersionInteroperabilityProxy: whether servers tell each other where they
	// are, and the three settings above mean something. Nil is true, unless an older release is emulated.
	PeerProxy *bool
}

func (c *AggregationConfig) settings(command Command) []Setting {
	if command == KubeAPIServer && c.Routing == nil {
		c.Routing = new(bool) // kube-apiserver's default
	}
	return []Setting{
		{
			Name:  "proxy-client-cert-file",
			Help:  "client certificate that aggregated servers see, PEM (default: an own one)",
			Value: &c.ProxyClientCertFile,
		},
		{
			Name: "proxy-client-key-file", Help: "key of --proxy-client-cert-file, PEM",
			Value: &c.ProxyClientKeyFile,
		},
		{
			Name:  "enable-aggregator-routing",
			Help:  "send requests for aggregated APIs to the endpoints of their services, and not to cluster IPs",
			Value: &c.Routing,
		},
		{
			Name:  "aggregator-reject-forwarding-redirect",
			Help:  "answer 502 where an aggregated server redirects a client",
			Value: &c.RejectRedirects,
		},
		{
			Name:  "peer-ca-file",
			Help:  "authorities of the certificates of other servers that share the etcd, PEM: send them requests for what they serve and this one does not",
			Value: &c.PeerCAFile,
		},
		{
			Name: "peer-advertise-ip", Help: "address at which those reach this one (default: --advertise-address)",
			Value: &c.PeerAdvertiseIP,
		},
		{
			Name: "peer-advertise-port", Help: "port at which those reach this one (default: --secure-port)",
			Value: &c.PeerAdvertisePort,
		},
	}
}

func (c *AggregationConfig) validate(p *problems, today bool) {
	if (c.ProxyClientCertFile == "") != (c.ProxyClientKeyFile == "") {
		p.add("--proxy-client-cert-file and --proxy-client-key-file go together: give both or none")
	}
	for _, err := range peer.Validate(c.peers(on(c.PeerProxy, today)), c.ProxyClientCertFile != "") {
		p.add("%w", err)
	}
}

func (c *AggregationConfig) peers(on bool) peer.Settings {
	return peer.Settings{Off: !on, IP: c.PeerAdvertiseIP, Port: c.PeerAdvertisePort, AuthorityFile: c.PeerCAFile}
}

// peers is what it means for the parts by which servers know of each other. A given address may be on this machine.
func (c *Config) peers() peer.Settings {
	s := c.Aggregation.peers(on(c.Aggregation.PeerProxy, !c.Emulation.read().Emulates()))
	s.Hostname, s.IP, s.Advertised = c.hostname, cmp.Or(s.IP, c.Services.AdvertiseAddress), c.advertised
	return s
}

// aggregation is what the configuration means for the part.
func (c *Config) aggregation() aggregation.Settings {
	a := &c.Aggregation
	return aggregation.Settings{
		Routing:         a.Routing == nil || *a.Routing,
		RejectRedirects: a.RejectRedirects == nil || *a.RejectRedirects,
	}
}
