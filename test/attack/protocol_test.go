package attack

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/bowsprit/bowsprit/internal/testing/leak"
	"github.com/bowsprit/bowsprit/testserver"
)

// stream is a connection for frames of the test's choice.
type stream struct {
	*testing.T
	*http2.Framer
	conn    *tls.Conn
	head    bytes.Buffer
	encoder *hpack.Encoder
}

// frames opens an HTTP/2 connection with the settings given.
func frames(t *testing.T, server *testserver.Server, settings ...http2.Setting) *stream {
	t.Helper()
	s := &stream{T: t, conn: dial(t, server, "h2")}
	s.encoder = hpack.NewEncoder(&s.head)
	s.Framer = http2.NewFramer(s.conn, s.conn)
	if _, err := io.WriteString(s.conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return s
}

// headers returns the encoded headers of a request.
func (s *stream) headers(method, path string, more ...string) []byte {
	s.Helper()
	s.head.Reset()
	fields := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, more...)
	for i := 0; i+1 < len(fields); i += 2 {
		if err := s.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			s.Fatal(err)
		}
	}
	return s.head.Bytes()
}

// closed reads until the server ends the connection. A read that times out is a server that does not.
func (s *stream) closed() {
	s.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.Fatal(err)
	}
	for {
		_, err := s.ReadFrame()
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			s.Fatal("the server keeps the connection")
		case err != nil && !errors.As(err, new(http2.StreamError)):
			return
		}
	}
}

// TestFrames attacks with frames. Each case has a connection of its own. Its writes may fail when the server closes the
// connection, which is one safe reaction. Afterwards the server answers, and has as many goroutines as before.
func TestFrames(t *testing.T) {
	t.Parallel()
	server := victim(t)
	alive(t, server)
	before := int64(runtime.NumGoroutine())
	cases := map[string]func(s *stream){
		"rapid reset": func(s *stream) {
			for id := uint32(1); id < 20_000; id += 2 {
				if s.WriteHeaders(http2.HeadersFrameParam{
					StreamID: id, BlockFragment: s.headers("GET", "/api/v1/pods"), EndHeaders: true, EndStream: true,
				}) != nil || s.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
					return
				}
			}
		},
		"headers that do not end": func(s *stream) {
			block := s.headers("GET", "/", "a", strings.Repeat("x", 4000))
			err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
			for err == nil { // until the server has enough
				err = s.WriteContinuation(1, false, block)
			}
		},
		"empty continuations": func(s *stream) {
			err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: s.headers("GET", "/")})
			for range 100_000 {
				if err != nil {
					return
				}
				err = s.WriteContinuation(1, false, nil)
			}
		},
		"pings that are not read": func(s *stream) {
			for range 50_000 {
				if s.WritePing(false, [8]byte{1}) != nil {
					return
				}
			}
		},
		"settings that are not read": func(s *stream) {
			for range 50_000 {
				if s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}) != nil {
					return
				}
			}
		},
		"more streams than allowed": func(s *stream) {
			for id := uint32(1); id < 5000; id += 2 {
				if s.WriteHeaders(http2.HeadersFrameParam{
					StreamID: id, BlockFragment: s.headers("POST", "/api/v1/namespaces"), EndHeaders: true,
				}) != nil {
					return
				}
			}
		},
		"priorities": func(s *stream) {
			for id := range uint32(50_000) {
				if s.WritePriority(2*id+3, http2.PriorityParam{StreamDep: 2*id + 1, Weight: 255}) != nil {
					return
				}
			}
		},
		"windows of no size": func(s *stream) {
			for id := uint32(1); id < 200; id += 2 {
				if s.WriteHeaders(http2.HeadersFrameParam{
					StreamID: id, EndHeaders: true, EndStream: true,
					BlockFragment: s.headers("GET", "/version", "authorization", "Bearer alice"),
				}) != nil {
					return
				}
			}
		},
		"windows that overflow": func(s *stream) {
			for range 3 {
				if s.WriteWindowUpdate(0, 1<<31-1) != nil {
					return
				}
			}
			s.closed()
		},
		"a header list that unpacks": func(s *stream) {
			// One long field in the dynamic table, referred to a few thousand times.
			block := bytes.Clone(s.headers("GET", "/", "x", strings.Repeat("y", 3000)))
			block = append(block, bytes.Repeat([]byte{0x80 | 62}, 8000)...)
			if s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true}) != nil {
				return
			}
		},
		"a frame of an unknown length": func(s *stream) {
			if _, err := s.conn.Write([]byte{0xff, 0xff, 0xff, 1, 4, 0, 0, 0, 1}); err == nil {
				s.closed()
			}
		},
		"data on a stream that was never opened": func(s *stream) {
			if s.WriteData(7, false, []byte("x")) == nil {
				s.closed()
			}
		},
		"a pseudo header after others": func(s *stream) {
			s.head.Reset()
			for _, f := range []hpack.HeaderField{{Name: "a", Value: "b"}, {Name: ":method", Value: "GET"}} {
				if err := s.encoder.WriteField(f); err != nil {
					s.Fatal(err)
				}
			}
			if err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: s.head.Bytes(),
				EndHeaders: true, EndStream: true}); err != nil {
				s.Fatal(err)
			}
		},
	}
	t.Run("cases", func(t *testing.T) {
		for name, attack := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := frames(t, server)
				attack(s)
				s.conn.Close()
				alive(t, server)
			})
		}
	})
	alive(t, server)
	leak.Settle(t, "goroutines", func() (int64, int64) {
		http.DefaultClient.CloseIdleConnections()
		return int64(runtime.NumGoroutine()), before + 200 // other tests run at the same time
	})
}

// TestSmuggling sends requests over HTTP/1.1 with an ambiguous end, and others that are not HTTP. The server must never
// send a response that only the administrator may see, or read the bytes after a broken request as another request.
// (net/http prefers chunks in a request with a length and chunks, so that is not a case.)
func TestSmuggling(t *testing.T) {
	t.Parallel()
	server := victim(t)
	hidden := "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"two lengths": "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 43\r\n\r\n" +
			hidden,
		"a length with a sign":       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n" + hidden,
		"a length below zero":        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n" + hidden,
		"a length that overflows":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n" + hidden,
		"chunks twice":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"another encoding":           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a space before the colon":   "GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n" + hidden,
		"a folded header":            "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + hidden,
		"a line feed in a name":      "GET / HTTP/1.1\r\nHost: x\r\nX\nY: z\r\n\r\n" + hidden,
		"a null in a value":          "GET / HTTP/1.1\r\nHost: x\r\nX-Remote-User: a\x00b\r\n\r\n" + hidden,
		"two hosts":                  "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + hidden,
		"no host":                    "GET / HTTP/1.1\r\n\r\n" + hidden,
		"a host with a path":         "GET / HTTP/1.1\r\nHost: x/../y\r\n\r\n" + hidden,
		"HTTP/0.9":                   "GET /api/v1/secrets\r\n" + hidden,
		"HTTP/3.0":                   "GET / HTTP/3.0\r\nHost: x\r\n\r\n" + hidden,
		"a method with a space":      "GET  / HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a method of control bytes":  "G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a path with a control byte": "GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"headers of 4 MB":            "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 4<<20) + "\r\n\r\n" + hidden,
		"100,000 headers":            "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 300_000) + "\r\n" + hidden,
		"another server's address":   "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n",
		"a foreign URL":              "GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, server, "http/1.1")
			go func() {
				_, _ = io.WriteString(conn, text)
				_ = conn.CloseWrite()
			}()
			answers := bufio.NewReader(conn)
			for first := true; ; first = false {
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					break // the connection is closed, which is right after a broken request
				}
				body, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if answer.StatusCode < 400 && (first || strings.Contains(string(body), "gitVersion")) {
					t.Errorf("status %d: %.200s", answer.StatusCode, body)
				}
			}
			alive(t, server)
		})
	}
}

// TestTLS connects with old protocols, without TLS, and with a certificate of an unknown authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := victim(t)
	address := strings.TrimPrefix(server.URL(), "https://")
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		config := tlsConfig(t, server.RESTConfig(), "h2")
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, version
		d := tls.Dialer{Config: config}
		if conn, err := d.DialContext(t.Context(), "tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s is spoken", tls.VersionName(version))
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
	if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), "gitVersion") {
		t.Errorf("without TLS: %s", answer)
	}
	alive(t, server)
}
