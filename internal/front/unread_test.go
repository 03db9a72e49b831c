package front

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// TestAnswerWithoutBody has a handler answer before the client has sent its body. The stream must end regularly: the
// body is read, and no reset follows the response.
func TestAnswerWithoutBody(t *testing.T) {
	t.Parallel()
	http2Servers(t, answerWithoutBody)
}

func answerWithoutBody(t *testing.T) {
	answered := make(chan struct{})
	s := runPiped(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		w.WriteHeader(http.StatusNotFound)
		close(answered)
	}, nil)
	defer s.stop(t)
	conn := s.dialAs(t, "h2")
	defer conn.Close()
	_, err := conn.Write([]byte(http2.ClientPreface))
	must(t, err)
	framer := http2.NewFramer(conn, conn)
	must(t, framer.WriteSettings())
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, field := range [][2]string{{":method", "PUT"}, {":scheme", "https"}, {":authority", "localhost"},
		{":path", "/api/v1/pods"}, {"content-length", "2"}} {
		must(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}))
	<-answered
	must(t, framer.WriteData(1, true, []byte("{}")))
	for ended, pinged := false, false; !pinged; {
		frame, err := framer.ReadFrame()
		must(t, err)
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			t.Fatalf("the stream is reset: %v", f.ErrCode)
		case *http2.PingFrame:
			pinged = f.IsAck()
		case *http2.HeadersFrame:
			ended = ended || f.StreamEnded()
		case *http2.DataFrame:
			ended = ended || f.StreamEnded()
		}
		if ended { // a reset would precede the response to this
			must(t, framer.WritePing(false, [8]byte{1}))
			ended = false
		}
	}
}

// TestSlowBodies has clients with a rejected or unread request send the body so slowly that it never ends. They get the
// response all the same, and the connection is closed after it.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ headers, code string }{
		"401":                      {"Authorization: Bearer nonsense\r\nContent-Length: 100\r\n", "401"},
		"403":                      {"Content-Length: 100\r\n", "403"},
		"403, chunks":              {"Transfer-Encoding: chunked\r\n", "403"},
		"403, an empty chunk":      {"Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "403"},
		"404, by a handler":        {"Test-User: root\r\nContent-Length: 100\r\n", "404"},
		"500, not understood":      {"Test-User: root\r\nContent-Length: 100\r\nTest-Path: /api/v1/watch/\r\n", "500"},
		"403, a body of gigabytes": {"Content-Length: 5000000000\r\n", "403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
				w.WriteHeader(http.StatusNotFound)
			}, func(c *Config) { c.Authenticator = byHeader{} })
			conn := s.dialAs(t, "http/1.1")
			path := "/api/v1/namespaces/default/pods"
			if strings.Contains(c.headers, "Test-Path") {
				path = "/api/v1/watch/"
			}
			_, err := conn.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: a\r\n" + c.headers + "\r\n"))
			must(t, err)
			must(t, conn.SetReadDeadline(time.Now().Add(time.Minute))) // instead of forever
			answer, err := io.ReadAll(conn)                            // to the end of the connection
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.code+" ") {
				t.Errorf("%v: %s", err, answer)
			}
		})
	}
}

// TestConnectionStays checks that a rejected client that sends its body soon keeps its connection.
func TestConnectionStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, text("hello"), func(c *Config) { c.Authenticator = byHeader{} })
		defer s.stop(t)
		conn := s.dialAs(t, "http/1.1")
		defer conn.Close()
		answers := bufio.NewReader(conn)
		for range 3 {
			_, err := conn.Write(
				[]byte("POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"))
			must(t, err)
			time.Sleep(time.Second / 2) // by the test's own clock
			_, err = conn.Write([]byte("{}"))
			must(t, err)
			resp, err := http.ReadResponse(answers, nil)
			must(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			must(t, err)
			if resp.StatusCode != http.StatusForbidden || resp.Close {
				t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
			}
		}
	})
}

// byHeader is servetest.ByName for clients without a token.
type byHeader struct{ servetest.ByName }

func (b byHeader) Authenticate(r *http.Request) (user.Info, error) {
	if r.Header.Get("Authorization") != "" {
		return nil, errors.New("wrong proof")
	}
	return b.ByName.Authenticate(r)
}

// dialAs opens a connection for a protocol as the administrator.
func (r *running) dialAs(t *testing.T, protocol string) *tls.Conn {
	t.Helper()
	config := r.client(t, 2, r.pki).Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{protocol}
	conn, err := tls.Dial("tcp", r.addr, config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
