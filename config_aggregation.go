package bowsprit

import "github.com/bowsprit/bowsprit/internal/kinds/apiregistration/aggregate"

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
	}
}

func (c *AggregationConfig) validate(p *problems) {
	if (c.ProxyClientCertFile == "") != (c.ProxyClientKeyFile == "") {
		p.add("--proxy-client-cert-file and --proxy-client-key-file go together: give both or none")
	}
}

// aggregation is what the configuration means for the part.
func (c *Config) aggregation() aggregate.Settings {
	a := &c.Aggregation
	return aggregate.Settings{
		Routing:         a.Routing == nil || *a.Routing,
		RejectRedirects: a.RejectRedirects == nil || *a.RejectRedirects,
	}
}
