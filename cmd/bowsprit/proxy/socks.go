package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// These are the values of the protocol, RFC 1928. The client need not authenticate to the proxy: the server
// authenticates it.
const (
	socksVersion      = 5
	socksNoAuth       = 0
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksSucceeded    = 0
	socksNotAllowed   = 2
	socksUnreachable  = 4
	socksRefused      = 5
	socksNoCommand    = 7
	socksNoAddress    = 8
	socksPatience     = 10 * time.Second // until the client has named its target
	socksDialPatience = 30 * time.Second
)

// names are host names in each server's certificate. Go's clients ignore a proxy of the environment for loopback
// addresses. They can reach the server by one of these names instead.
var names = [...]string{
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// socks is a SOCKS5 proxy that leads to one server. Serve may be called once.
type socks struct {
	server string          // its address, host:port
	leads  map[string]bool // allowed targets, host:port in lower case
	log    io.Writer
	ended  sync.WaitGroup
}

// newSOCKS returns a proxy to the server of a kubeconfig, which must be reached without another proxy.
func newSOCKS(config *rest.Config, log io.Writer) (*socks, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	proxyOf := config.Proxy
	if proxyOf == nil {
		proxyOf = http.ProxyFromEnvironment
	}
	switch other, err := proxyOf(&http.Request{URL: target}); {
	case err != nil:
		return nil, err
	case other != nil:
		return nil, fmt.Errorf("--socks5: %s is reached through the proxy %s: have clients use that", target.Host,
			other.Redacted())
	}
	server := withPort(target)
	s := &socks{server: server, leads: map[string]bool{strings.ToLower(server): true}, log: log}
	if target.Scheme == "https" {
		for _, name := range names {
			s.leads[name+":443"] = true
		}
	}
	if host, port, _ := net.SplitHostPort(server); host == "localhost" || isLoopback(host) {
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			s.leads[net.JoinHostPort(name, port)] = true
		}
	}
	return s, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

func withPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// serveSOCKS serves on the address of --socks5 until ctx ends. stop ends it sooner, and waits.
func (o *flags) serveSOCKS(ctx context.Context, config *rest.Config, out, log io.Writer) (stop func(), err error) {
	s, err := newSOCKS(config, log)
	if err != nil {
		return nil, err
	}
	address := o.socks5
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		address = net.JoinHostPort(o.address, address)
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("--socks5 %q is neither a port nor an address with one, as in 127.0.0.1:1080", address)
	}
	listener, err := listenTCP("socks5", address)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "SOCKS5 proxy to %s on %s\n", s.server, listener.Addr())
	ctx, cancel := context.WithCancel(ctx)
	s.ended.Go(func() { s.serve(ctx, listener) })
	return func() { cancel(); s.ended.Wait() }, nil
}

// serve accepts connections until ctx ends. Its end closes all connections.
func (s *socks) serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				conn.Close()
			}
			return
		case err != nil: // such as too many open files: the next may succeed
			fmt.Fprintf(s.log, "bowsprit: SOCKS5: %v\n", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		s.ended.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if err := s.handle(ctx, conn); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.log, "bowsprit: SOCKS5: client %s: %v\n", conn.RemoteAddr(), err)
			}
		})
	}
}

// handle serves a client. It returns errors of the client or of the connection to the server. When the connection is
// established, its two ends handle its errors.
func (s *socks) handle(ctx context.Context, client net.Conn) error {
	if err := client.SetDeadline(time.Now().Add(socksPatience)); err != nil {
		return err
	}
	in := bufio.NewReader(client)
	if err := greet(in, client); err != nil {
		return err
	}
	target, code, err := readTarget(in)
	if code == socksSucceeded && err == nil && !s.leads[strings.ToLower(target)] {
		code, err = socksNotAllowed, fmt.Errorf("%s is refused: this proxy connects only to %s", target, s.server)
	}
	if code != socksSucceeded {
		return errors.Join(err, reply(client, code))
	}
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: socksDialPatience}
	server, err := dialer.DialContext(ctx, "tcp", s.server)
	if err != nil {
		code = socksUnreachable
		if errors.Is(err, syscall.ECONNREFUSED) {
			code = socksRefused
		}
		return errors.Join(err, client.SetDeadline(time.Now().Add(socksPatience)), reply(client, code))
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := errors.Join(reply(client, socksSucceeded), client.SetDeadline(time.Time{})); err != nil {
		return err
	}
	s.join(client, in, server)
	return nil
}

// join copies in both directions until both end. The end of one direction closes only that half; the other end may send
// more.
func (s *socks) join(client net.Conn, in io.Reader, server net.Conn) {
	var back sync.WaitGroup
	back.Go(func() { forward(client, server) })
	forward(server, in)
	back.Wait()
}

// forward copies until the source ends. If the destination accepts no more data, forward also closes the source, so
// that its sender stops.
func forward(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		if c, ok := from.(io.Closer); ok {
			c.Close()
		}
	}
}

// greet reads the client's authentication methods and selects "no authentication".
func greet(in *bufio.Reader, out io.Writer) error {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if head[0] != socksVersion {
		return errors.New("the client does not speak SOCKS5")
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(in, methods); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	for _, method := range methods {
		if method == socksNoAuth {
			_, err := out.Write([]byte{socksVersion, socksNoAuth})
			return err
		}
	}
	_, err := out.Write([]byte{socksVersion, socksNoMethod})
	return errors.Join(errors.New("the client requires authentication, which this proxy does not support"), err)
}

// readTarget reads the client's target, host:port. If code is not socksSucceeded, the caller must send it to the
// client.
func readTarget(in *bufio.Reader) (target string, code byte, err error) {
	head := make([]byte, 4) // version, command, reserved, type of the address
	if _, err := io.ReadFull(in, head); err != nil {
		return "", socksSucceeded, fmt.Errorf("request: %w", err)
	}
	length := 0
	switch head[3] {
	case socksIPv4:
		length = net.IPv4len
	case socksIPv6:
		length = net.IPv6len
	case socksName:
		n, err := in.ReadByte()
		if err != nil {
			return "", socksSucceeded, fmt.Errorf("request: %w", err)
		}
		length = int(n)
	default:
		return "", socksNoAddress, fmt.Errorf("unknown address type %d", head[3])
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(in, rest); err != nil {
		return "", socksSucceeded, fmt.Errorf("request: %w", err)
	}
	if head[0] != socksVersion || head[1] != socksConnect {
		return "", socksNoCommand, fmt.Errorf("command %d is refused: this proxy supports only CONNECT", head[1])
	}
	host := string(rest[:length])
	if head[3] != socksName {
		address, _ := netip.AddrFromSlice(rest[:length])
		host = address.Unmap().String()
	}
	port := int(rest[length])<<8 | int(rest[length+1])
	return net.JoinHostPort(strings.TrimSuffix(host, "."), strconv.Itoa(port)), socksSucceeded, nil
}

// reply sends the outcome of its request to a client. The address is zero: a client does not need the proxy's own
// address.
func reply(out io.Writer, code byte) error {
	_, err := out.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
