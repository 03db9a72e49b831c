package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// echo is a server that sends all data back after its client has closed its half of the connection.
func echo(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() {
				defer conn.Close()
				reply, _ := io.ReadAll(conn)
				conn.Write(append([]byte("echo "), reply...))
			})
		}
	})
	t.Cleanup(func() { listener.Close(); ended.Wait() })
	return listener.Addr().(*net.TCPAddr)
}

// startSOCKS starts a SOCKS5 proxy to a server. stop ends it, waits, and returns its log.
func startSOCKS(t *testing.T, server string) (address string, stop func() string) {
	t.Helper()
	log := &logtest.Log{}
	out := &bytes.Buffer{}
	o := &flags{socks5: "0", address: "127.0.0.1"}
	end, err := o.serveSOCKS(t.Context(), &rest.Config{Host: server}, out, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	_, address, _ = strings.Cut(strings.TrimSpace(out.String()), " on ")
	return address, func() string { end(); return log.String() }
}

// request is one of SOCKS5: a command, the type of an address, the address, a port.
func request(command, kind byte, address string, port int) string {
	b := append([]byte{socksVersion, command, 0, kind}, address...)
	return string(binary.BigEndian.AppendUint16(b, uint16(port)))
}

// TestSOCKS checks the replies to clients, byte by byte (RFC 1928), and the log.
func TestSOCKS(t *testing.T) {
	t.Parallel()
	server := echo(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	plain := "http://" + server.String()
	const (
		greeting, agreed  = "\x05\x01\x00", "\x05\x00"
		ok                = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
		refusedFrom, tail = "\x05", "\x00\x01\x00\x00\x00\x00\x00\x00"
	)
	refused := func(code byte) string { return agreed + refusedFrom + string([]byte{code}) + tail }
	const loopback, both = "\x7f\x00\x00\x01", agreed + ok + "echo hi"
	for name, c := range map[string]struct{ server, send, want, log string }{
		"address":      {plain, greeting + request(1, 1, loopback, server.Port) + "hi", both, ""},
		"several ways": {plain, "\x05\x02\x02\x00" + request(1, 1, loopback, server.Port) + "hi", both, ""},
		"name":         {plain, greeting + request(1, 3, "\x09LocalHost", server.Port) + "hi", both, ""},
		"name with a dot": {
			plain, greeting + request(1, 3, "\x0alocalhost.", server.Port) + "hi", both, "",
		},
		"IPv6": {
			plain, greeting + request(1, 4, string(net.IPv6loopback), server.Port) + "hi", both, "",
		},
		"IPv4 in IPv6": {
			plain, greeting + request(1, 4, string(net.IPv4(127, 0, 0, 1).To16()), server.Port) + "hi", both, "",
		},
		"name in a cluster": { // of a server with TLS
			"https://" + server.String(), greeting + request(1, 3, "\x16kubernetes.default.svc", 443) + "hi",
			both, "",
		},
		"name in a cluster without TLS": {
			plain, greeting + request(1, 3, "\x16kubernetes.default.svc", 443), refused(socksNotAllowed),
			"kubernetes.default.svc:443 is refused: this proxy connects only to " + server.String(),
		},
		"another port": {
			plain, greeting + request(1, 1, loopback, 22), refused(socksNotAllowed), "127.0.0.1:22 is refused",
		},
		"another host": {
			plain, greeting + request(1, 3, "\x0bexample.com", server.Port), refused(socksNotAllowed), "example.com:",
		},
		"server that is not there": {
			"http://" + closed.Addr().String(), greeting + request(1, 1, loopback, closed.Addr().(*net.TCPAddr).Port),
			refused(socksRefused), "connection refused",
		},
		"to listen":        {plain, greeting + request(2, 1, loopback, 1), refused(socksNoCommand), "command 2 is"},
		"datagrams":        {plain, greeting + request(3, 1, loopback, 1), refused(socksNoCommand), "command 3 is"},
		"unknown address":  {plain, greeting + request(1, 9, "", 1), refused(socksNoAddress), "unknown address type 9"},
		"with a password":  {plain, "\x05\x01\x02", "\x05\xff", "requires authentication"},
		"SOCKS4":           {plain, "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "", "does not speak SOCKS5"},
		"HTTP":             {plain, "GET / HTTP/1.1\r\n\r\n", "", "does not speak SOCKS5"},
		"nothing":          {plain, "", "", "greeting: EOF"},
		"half a greeting":  {plain, "\x05\x02\x00", "", "greeting: unexpected EOF"},
		"half a request":   {plain, greeting + "\x05\x01", agreed, "request: unexpected EOF"},
		"half a name":      {plain, greeting + "\x05\x01\x00\x03\x09loc", agreed, "request: unexpected EOF"},
		"without a length": {plain, greeting + "\x05\x01\x00\x03", agreed, "request: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, stop := startSOCKS(t, c.server)
			client, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			io.WriteString(client, c.send)
			client.(*net.TCPConn).CloseWrite()
			got, _ := io.ReadAll(client) // a reset after a refusal has no data
			if string(got) != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			if log := stop(); !strings.Contains(log, c.log) || c.log == "" && log != "" {
				t.Errorf("logged %q, not %q", log, c.log)
			}
		})
	}
}

// TestSOCKSEnds checks that the end of the command ends open connections, both established ones and connections without
// a request yet.
func TestSOCKSEnds(t *testing.T) {
	t.Parallel()
	server := echo(t)
	address, stop := startSOCKS(t, "http://"+server.String())
	var clients []net.Conn
	for _, send := range []string{"", "\x05\x01\x00", "\x05\x01\x00" + request(1, 1, "\x7f\x00\x00\x01", server.Port)} {
		client, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		io.WriteString(client, send)
		clients = append(clients, client)
	}
	if _, err := io.ReadFull(clients[2], make([]byte, 12)); err != nil { // it has its connection
		t.Fatal(err)
	}
	if log := stop(); log != "" {
		t.Errorf("logged %q", log)
	}
	for _, client := range clients {
		io.Copy(io.Discard, client) // ends
	}
	if _, err := new(net.Dialer).DialContext(context.Background(), "tcp", address); err == nil {
		t.Error("it still listens")
	}
}

// TestWithPort checks the default ports of URLs.
func TestWithPort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://a": "a:443", "http://a": "a:80", "https://a:6443": "a:6443", "https://[::1]": "[::1]:443",
		"https://[::1]:6443/path": "[::1]:6443",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := withPort(u); got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}
