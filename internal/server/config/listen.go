package config

import (
	"cmp"
	"net"
)

// Listen configures the address of the server.
type Listen struct {
	// BindAddress is the address to listen on, "127.0.0.1" if empty.
	BindAddress string
	// SecurePort is the port to listen on; 0 picks a free one.
	SecurePort int
	// Listener, if set, is used instead of BindAddress and SecurePort. The server closes it.
	Listener net.Listener
}

const defaultBindAddress = "127.0.0.1"

func (c *Listen) setDefaults() { c.BindAddress = cmp.Or(c.BindAddress, defaultBindAddress) }

func (c *Listen) settings(command Command) []Setting {
	address := defaultBindAddress
	if command == KubeAPIServer {
		address = "0.0.0.0"
	}
	return []Setting{
		{Name: "bind-address", Help: "IP address to listen on", Value: &c.BindAddress, Default: address},
		{
			Name: "secure-port", Help: "port to listen on, with TLS; 0 picks a free one",
			Value: &c.SecurePort, Default: 6443,
		},
	}
}

func (c *Listen) validate(p *problems) {
	if c.SecurePort < 0 || c.SecurePort > 65535 {
		p.add("--secure-port %d is not a port: use 1 to 65535, or 0 for a free one", c.SecurePort)
	}
	if c.BindAddress != "" && net.ParseIP(c.BindAddress) == nil {
		p.add("--bind-address %q is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all", c.BindAddress)
	}
}
