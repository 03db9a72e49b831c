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

// errAddress is the error for an address that is only reachable on the server's own machine or link: the status of a
// node or pod must not direct the server there.
var errAddress = errors.New("address not allowed")

// allowed reports whether a connection to an address is allowed. local allows loopback addresses.
func allowed(ip netip.Addr, local bool) bool {
	ip = ip.Unmap()
	if ip.IsLoopback() {
		return local
	}
	return ip.IsGlobalUnicast()
}

// checked wraps dial with a check of the address. A host name is checked by the address of the established connection,
// since each look-up may return another one; with a Konnectivity server, the agent resolves names. The host name of the
// server's own machine may resolve to a loopback address other than 127.0.0.1, as on Debian; such an address is
// allowed, since no service listens only there.
func (y *connector) checked(dial egress.Dial, local bool) egress.Dial {
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

// clean is a transport that removes response headers reserved for this server. Upgrades use its dialer.
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
