package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// counted counts the connections that a listener has accepted.
type counted struct {
	net.Listener
	n atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

// double is a Konnectivity server and its agent in one, as seen by a client.
type double struct {
	client.UnimplementedProxyServiceServer
	socket   string
	listener *counted
	server   *grpc.Server
	// hold makes requests for connections, signalled by asked, wait until their caller is gone, which gone signals.
	hold     bool
	requests chan struct{}
	gone     chan struct{}
	// closed signals that the server was told to close a connection.
	closed chan struct{}
}

func startKonnectivity(t *testing.T, hold bool) *double {
	t.Helper()
	k := &double{
		socket: filepath.Join(t.TempDir(), "k.socket"), hold: hold, requests: make(chan struct{}),
		gone: make(chan struct{}, 100), closed: make(chan struct{}, 1000),
	}
	k.listen(t)
	return k
}

func (k *double) listen(t *testing.T) {
	listener, err := net.Listen("unix", k.socket)
	if err != nil {
		t.Fatal(err)
	}
	k.listener, k.server = &counted{Listener: listener}, grpc.NewServer()
	client.RegisterProxyServiceServer(k.server, k)
	var wg sync.WaitGroup
	wg.Go(func() { _ = k.server.Serve(k.listener) })
	server := k.server
	t.Cleanup(func() { server.Stop(); wg.Wait() })
}

// Proxy implements client.ProxyServiceServer: one connection for each call, as upstream's server does.
func (k *double) Proxy(stream client.ProxyService_ProxyServer) error {
	p, err := stream.Recv()
	if err != nil {
		return err
	}
	request := p.GetDialRequest()
	answer := &client.DialResponse{Random: request.Random, ConnectID: 7}
	if k.hold {
		k.requests <- struct{}{}
		_, err := stream.Recv()
		k.gone <- struct{}{}
		return err
	}
	conn, err := net.Dial(request.Protocol, request.Address)
	if err != nil {
		answer = &client.DialResponse{Random: request.Random, Error: err.Error()}
	}
	err = stream.Send(&client.Packet{
		Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{DialResponse: answer},
	})
	if err != nil || conn == nil {
		return err
	}
	defer conn.Close()
	go func() {
		for {
			p, err := stream.Recv()
			if err != nil || p.Type == client.PacketType_CLOSE_REQ {
				_ = conn.Close()
				k.closed <- struct{}{}
				return
			}
			_, _ = conn.Write(p.GetData().GetData())
		}
	}()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return stream.Send(&client.Packet{Type: client.PacketType_CLOSE_RSP,
				Payload: &client.Packet_CloseResponse{CloseResponse: &client.CloseResponse{ConnectID: 7}}})
		}
		err = stream.Send(&client.Packet{Type: client.PacketType_DATA,
			Payload: &client.Packet_Data{Data: &client.Data{ConnectID: 7, Data: buf[:n]}}})
		if err != nil {
			return err
		}
	}
}

// startConnect starts an HTTP CONNECT proxy. answer gets the request and writes the response; it returns the connection
// to continue with, nil for none.
func startConnect(t *testing.T, listener net.Listener, answer func(w io.Writer, r *http.Request) net.Conn) {
	t.Helper()
	var wg sync.WaitGroup
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		far := answer(conn, r)
		if far == nil {
			return
		}
		defer far.Close()
		wg.Go(func() {
			_, _ = io.Copy(far, in)
			_ = far.Close()
		})
		_, _ = io.Copy(conn, far)
	}
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
}

// forward is the answer of a working proxy.
func forward(w io.Writer, r *http.Request) net.Conn {
	far, err := net.Dial("tcp", r.Host)
	if err != nil {
		_, _ = io.WriteString(w, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return nil
	}
	_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
	return far
}

// echo starts a server that sends back its input.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
	return listener.Addr().String()
}
