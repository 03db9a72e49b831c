//go:build !unix

package conn

import "net"

// tryWriter leaves all writes to Send.
type tryWriter struct{}

func (*tryWriter) begin(net.Conn) {}

func (*tryWriter) write([]byte) (int, error) { return 0, nil }
