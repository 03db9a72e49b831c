package kubelet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/forward"
)

// errAddress is about an address that only programs on the server's own machine or link should reach: the status of a
// node or a pod must not lead the server there.
var errAddress = errors.New("address not allowed")

// allowed reports whether a connection may go to an address. Loopback addresses are a kubelet's only if local says so.
func allowed(ip netip.Addr, local bool) bool {
	ip = ip.Unmap()
	if ip.IsLoopback() {
		return local
	}
	return ip.IsGlobalUnicast()
}

// checked returns dial without the addresses that are not allowed. A name counts by the address at which the connection
// ends, since it may have another one at each look; through a Konnectivity server, an agent looks names up. The name of
// the server's own machine may be a loopback address other than 127.0.0.1, as on Debian: nothing listens there alone.
func (y *way) checked(dial egress.Dial, local bool) egress.Dial {
	own, err := os.Hostname()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		if ip, err := netip.ParseAddr(host); err == nil && !allowed(ip, local) {
			return nil, errAddress
		}
		conn, failed := dial(ctx, network, address)
		if failed != nil {
			return nil, failed
		}
		to, direct := conn.RemoteAddr().(*net.TCPAddr)
		if !direct || strconv.Itoa(to.Port) != port { // through a proxy
			return conn, nil
		}
		ip := to.AddrPort().Addr().Unmap()
		self := err == nil && host == own && ip.IsLoopback() && ip.Is4() && ip.String() != "127.0.0.1"
		if !allowed(ip, local || self) {
			conn.Close()
			return nil, errAddress
		}
		return conn, nil
	}
}

// clean is a transport without the headers of an answer that only this server may send. An upgrade uses its dialer.
type clean struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (c clean) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.Transport.RoundTrip(r)
	if err == nil {
		forward.CleanHeaders(resp.Header)
	}
	return resp, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper of apimachinery.
func (c clean) WrappedRoundTripper() http.RoundTripper { return c.Transport }
