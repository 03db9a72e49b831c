package bowsprit

import (
	"cmp"

	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/peer"
)

// AggregationConfig configures the connections to the servers of APIServices.
type AggregationConfig struct {
	// ProxyClientCertFile and ProxyClientKeyFile are the client certificate that allows this server to name the user of
	// a request to such a server. The files are read again when they change. Without them the server makes its own
	// certificate, and the ConfigMap kube-system/extension-apiserver-authentication contains its authority.
	ProxyClientCertFile, ProxyClientKeyFile string
	// Routing sends requests to the ready endpoints of a service in place of its cluster IP, so that no network with
	// cluster IPs is needed; nil means true.
	Routing *bool
	// RejectRedirects answers 502 where such a server sends the client elsewhere; nil is true.
	RejectRedirects *bool
	// PeerCAFile has the authorities of the serving certificates of the other servers that share the etcd, PEM. With
	// it, the server forwards a request for an unknown resource to a server that has the resource, and aggregated
	// discovery lists the resources of all servers. The file is read again when it changes.
	PeerCAFile string
	// PeerAdvertiseIP and PeerAdvertisePort are the address of this server for the others; the default is its address
	// for nodes.
	PeerAdvertiseIP, PeerAdvertisePort string
	// PeerProxy is Kubernetes' feature gate UnknownVersionInteroperabilityProxy: whether servers publish their
	// addresses to each other and use the three settings above. Nil means true, unless an older release is emulated.
	PeerProxy *bool
}

func (c *AggregationConfig) setDefaults(today bool) {
	c.Routing = cmp.Or(c.Routing, new(true))
	c.RejectRedirects = cmp.Or(c.RejectRedirects, new(true))
	c.PeerProxy = cmp.Or(c.PeerProxy, &today)
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
	for _, err := range peer.Validate(c.peers(*cmp.Or(c.PeerProxy, &today)), c.ProxyClientCertFile != "") {
		p.add("%w", err)
	}
}

func (c *AggregationConfig) peers(on bool) peer.Settings {
	return peer.Settings{Off: !on, IP: c.PeerAdvertiseIP, Port: c.PeerAdvertisePort, AuthorityFile: c.PeerCAFile}
}

// peers returns the settings for the parts that connect servers with each other. A given address may be on this
// machine.
func (c *Config) peers() peer.Settings {
	s := c.Aggregation.peers(*c.Aggregation.PeerProxy)
	s.Hostname, s.IP, s.Advertised = c.hostname, cmp.Or(s.IP, c.Services.AdvertiseAddress), c.advertised
	return s
}

// aggregation returns the settings for the part.
func (c *Config) aggregation() aggregation.Settings {
	return aggregation.Settings{Routing: *c.Aggregation.Routing, RejectRedirects: *c.Aggregation.RejectRedirects}
}
