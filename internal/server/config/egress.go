package config

import "github.com/bowsprit/bowsprit/internal/net/egress"

// Egress configures the server's outgoing connections.
type Egress struct {
	// ConfigFile is an EgressSelectorConfiguration of apiserver.k8s.io/v1beta1, which assigns a proxy, of HTTP CONNECT
	// or Konnectivity, to networks (cluster, controlplane, etcd); "" dials directly. It is read at the start.
	ConfigFile string
}

func (c *Egress) settings() []Setting {
	return []Setting{{
		Name: "egress-selector-config-file",
		Help: "EgressSelectorConfiguration, with the proxies by which the server reaches the cluster, the control" +
			" plane and etcd",
		Value: &c.ConfigFile,
	}}
}

func (c *Egress) validate(p *problems) {
	if c.ConfigFile == "" {
		return
	}
	if _, err := egress.Read(c.ConfigFile); err != nil {
		p.add("--egress-selector-config-file: %w: correct the file, or the flag that names it", err)
	}
}
