package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// relay is a proxy of clients: SOCKS5 without authentication, and HTTP CONNECT, on one port. Like the far end of an ssh
// connection it looks names up itself.
type relay struct {
	net.Listener
	// hosts are the addresses, "host:port", of names that only the relay resolves. It resolves no other names.
	hosts map[string]string
	ended sync.WaitGroup
	mu    struct {
		sync.Mutex
		requests []string      // targets of clients, "SOCKS5 host:port" or "CONNECT host:port"
		more     chan struct{} // closed and replaced at every addition
		conns    map[net.Conn]bool
	}
}

// startRelay starts a relay; with a certificate clients use TLS with it.
func startRelay(t *testing.T, certificate *tls.Certificate, hosts map[string]string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}})
	}
	r := &relay{Listener: listener, hosts: hosts}
	r.mu.conns, r.mu.more = map[net.Conn]bool{}, make(chan struct{})
	r.ended.Go(r.accept)
	t.Cleanup(r.stop)
	return r
}

func (r *relay) stop() {
	r.Close()
	r.mu.Lock()
	for c := range r.mu.conns {
		c.Close()
	}
	r.mu.conns = nil
	r.mu.Unlock()
	r.ended.Wait()
}

// since returns the targets of clients after the first n.
func (r *relay) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.requests[n:])
}

// await waits until a client has wanted to reach a target.
func (r *relay) await(t *testing.T, target string) {
	t.Helper()
	ctx := bounded(t, commandLimit)
	for {
		r.mu.Lock()
		requests, more := slices.Clone(r.mu.requests), r.mu.more
		r.mu.Unlock()
		if slices.Contains(requests, target) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("the proxy was never asked for %s, but for %q", target, requests)
		}
	}
}

func (r *relay) accept() {
	for {
		c, err := r.Accept()
		if err != nil {
			return
		}
		if !r.keep(c) {
			return
		}
		r.ended.Go(func() {
			defer r.drop(c)
			_ = r.serve(c) // the client sees it
		})
	}
}

func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.conns == nil {
		c.Close()
		return false
	}
	r.mu.conns[c] = true
	return true
}

func (r *relay) drop(c net.Conn) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.conns, c)
}

// serve speaks with one client.
func (r *relay) serve(c net.Conn) error {
	in := bufio.NewReader(c)
	first, err := in.Peek(1)
	if err != nil {
		return err
	}
	target, agree, refuse := "", "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n\r\n"
	if first[0] == 5 {
		agree, refuse = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00"
		target, err = greet(in, c)
	} else {
		target, err = readConnect(in)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.mu.requests = append(r.mu.requests, map[bool]string{true: "SOCKS5 ", false: "CONNECT "}[first[0] == 5]+target)
	close(r.mu.more)
	r.mu.more = make(chan struct{})
	r.mu.Unlock()
	server, err := r.dial(target)
	if err != nil {
		_, err = io.WriteString(c, refuse)
		return err
	}
	if !r.keep(server) {
		return net.ErrClosed
	}
	defer r.drop(server)
	if _, err := io.WriteString(c, agree); err != nil {
		return err
	}
	r.ended.Go(func() { io.Copy(server, in); server.Close() })
	_, err = io.Copy(c, server)
	return err
}

// dial connects to a target by its address, or by a name in hosts.
func (r *relay) dial(target string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	if to := r.hosts[host]; to != "" {
		target = to
	} else if net.ParseIP(host) == nil {
		return nil, fmt.Errorf("no host is called %q", host)
	}
	return net.Dial("tcp", target)
}

// greet reads the greeting and the request of a SOCKS5 client (RFC 1928) and returns its target.
func greet(in *bufio.Reader, out io.Writer) (string, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return "", err
	}
	if _, err := in.Discard(int(head[1])); err != nil { // its authentication methods
		return "", err
	}
	if _, err := out.Write([]byte{5, 0}); err != nil {
		return "", err
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(in, request); err != nil {
		return "", err
	}
	if request[1] != 1 {
		return "", errors.New("not a request to connect")
	}
	length := map[byte]int{1: net.IPv4len, 4: net.IPv6len}[request[3]]
	if request[3] == 3 { // a name
		n, err := in.ReadByte()
		if err != nil {
			return "", err
		}
		length = int(n)
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(in, rest); err != nil {
		return "", err
	}
	host, port := string(rest[:length]), binary.BigEndian.Uint16(rest[length:])
	if request[3] != 3 {
		host = net.IP(rest[:length]).String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

// readConnect reads a request of an HTTP client and returns its target.
func readConnect(in *bufio.Reader) (string, error) {
	request, err := http.ReadRequest(in)
	if err != nil {
		return "", err
	}
	if request.Method != http.MethodConnect {
		return "", errors.New("not a request to connect")
	}
	return request.Host, nil
}
