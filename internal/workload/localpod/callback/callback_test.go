package callback

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair is a server that has a link to a client, and the client's end of the connection.
type pair struct {
	link   *Link
	client net.Conn
	ended  chan struct{} // closed when the client has stopped to serve
}

// connect connects a client with these ports.
func connect(t *testing.T, ports Ports, pages http.Handler) *pair {
	t.Helper()
	links := make(chan *Link, 1) // the one link
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l, err := Upgrade(w, http.Header{"Given": {"name"}})
		if err != nil {
			t.Error(err)
		}
		links <- l
	}))
	t.Cleanup(server.Close)
	r, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, headers, err := Dial(server.Client(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := headers.Get("Given"); got != "name" {
		t.Errorf("the header is %q", got)
	}
	p := &pair{link: <-links, client: conn, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(p.ended); Serve(ctx, conn, ports, pages) }()
	t.Cleanup(func() { cancel(); <-p.ended; <-p.link.Done() })
	return p
}

// listen starts a program that serves each connection, and returns its port.
func listen(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// lines answers each line, and ends after the end of its input.
func lines(c net.Conn) {
	in := bufio.NewScanner(c)
	for in.Scan() {
		fmt.Fprintln(c, "got "+in.Text())
	}
	fmt.Fprintln(c, "end")
}

func dial(t *testing.T, l *Link, port int) net.Conn {
	t.Helper()
	c, err := l.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestDial sends data in both directions, and the end of the data in one, over several connections at once.
func TestDial(t *testing.T) {
	p := connect(t, Ports{9443: listen(t, lines)}, http.NotFoundHandler())
	var all sync.WaitGroup
	for i := range 20 {
		c := dial(t, p.link, 9443)
		all.Go(func() {
			fmt.Fprintf(c, "hello %d\n", i)
			in := bufio.NewReader(c)
			if got, err := in.ReadString('\n'); got != fmt.Sprintf("got hello %d\n", i) {
				t.Errorf("%q, %v", got, err)
			}
			if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(in); string(got) != "end\n" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

// TestRefused checks that a server reaches no port that the client does not name, whatever the number.
func TestRefused(t *testing.T) {
	other := listen(t, func(net.Conn) { t.Error("the server reaches another port of the client's machine") })
	closed := listen(t, lines)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nothing listens there
	p := connect(t, Ports{9443: l.Addr().(*net.TCPAddr).Port, 80: closed}, http.NotFoundHandler())
	for _, port := range []int{other, closed, 0, -1, 22, 65536, 1 << 40} {
		if c, err := p.link.Dial(t.Context(), port); err == nil || !strings.Contains(err.Error(), "is not one of") {
			t.Errorf("port %d: %v, %v", port, c, err)
		}
	}
	if _, err := p.link.Dial(t.Context(), 9443); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a port without a listener: %v", err)
	}
	for _, path := range []string{"/connect", "/connect?port=80"} { // not by GET
		if _, err := p.link.Get(t.Context(), path); err == nil {
			t.Errorf("%s by GET is answered", path)
		}
	}
}

// TestEnds checks that each kind of end of a client ends the link and its connections, and that nothing connects
// afterwards.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*pair){
		"client leaves": func(p *pair) { p.client.Close() },
		"server closes": func(p *pair) { p.link.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := connect(t, Ports{1: listen(t, lines)}, http.NotFoundHandler())
			c := dial(t, p.link, 1)
			end(p)
			<-p.link.Done()
			<-p.ended
			if n, err := c.Read(make([]byte, 1)); err == nil {
				t.Errorf("read %d bytes", n)
			}
			if _, err := p.link.Dial(t.Context(), 1); !errors.Is(err, ErrGone) {
				t.Errorf("dial: %v", err)
			}
			if _, err := p.link.Get(t.Context(), "/"); !errors.Is(err, ErrGone) {
				t.Errorf("get: %v", err)
			}
		})
	}
}

// TestDeadline checks that a deadline ends reads and writes, and that an aborted dial leaves nothing open.
func TestDeadline(t *testing.T) {
	held := make(chan error, 2)
	port := listen(t, func(c net.Conn) {
		_, err := io.Copy(io.Discard, c)
		held <- err
	})
	p := connect(t, Ports{1: port}, http.NotFoundHandler())
	c := dial(t, p.link, 1)
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.link.Dial(ctx, 1); err == nil {
		t.Error("dialled with an ended context")
	}
}

// TestGet reads a page, and bounds a refusal.
func TestGet(t *testing.T) {
	pages := http.NewServeMux()
	pages.HandleFunc("/log", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "line") })
	pages.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("\x1bx", 1<<20), http.StatusTeapot)
	})
	p := connect(t, nil, pages)
	body, err := p.link.Get(t.Context(), "/log")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); string(got) != "line" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, err = p.link.Get(t.Context(), "/long")
	if err == nil || len(err.Error()) > 8*maxRefusal || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("refusal: %.100q", err)
	}
}

// TestDialRefused checks that other responses than the upgrade are errors with the response.
func TestDialRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	r, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Dial(server.Client(), r)
	var refused *Refused
	if !errors.As(err, &refused) || refused.Response.StatusCode != http.StatusNotFound {
		t.Fatal(err)
	}
	refused.Response.Body.Close()
}
