// Package external connects to an etcd cluster elsewhere, as a backend of package store.
//
// Config opens it. The connection survives members that are stopped or paused: reads go to the next member (hedge), a
// write is sent again under a guard, a watch resumes on another member.
//
// Methods are safe for concurrent use.
package external

import (
	"context"
	"net"
)

// Config names a running etcd cluster.
type Config struct {
	Endpoints                 []string
	CAFile, CertFile, KeyFile string // PEM; CertFile and KeyFile go together
	// Dial opens connections to an address, "host:port"; nil dials directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}
