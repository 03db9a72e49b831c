package front

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// TestAnswerWithoutBody has a handler answer before the client has sent its body. The stream must end by itself: the
// body is taken, and no reset follows the answer.
func TestAnswerWithoutBody(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	s := run(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		w.WriteHeader(http.StatusNotFound)
		close(answered)
	}, nil)
	conn := s.dial(t)
	_, err := conn.Write([]byte(http2.ClientPreface))
	must(t, err)
	framer := http2.NewFramer(conn, conn)
	must(t, framer.WriteSettings())
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, field := range [][2]string{{":method", "PUT"}, {":scheme", "https"}, {":authority", s.addr},
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
		if ended { // a reset would stand before the answer to this
			must(t, framer.WritePing(false, [8]byte{1}))
			ended = false
		}
	}
}

// dial opens a connection for HTTP/2 as the administrator.
func (r *running) dial(t *testing.T) *tls.Conn {
	t.Helper()
	config := r.client(t, 2, r.pki).Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", r.addr, config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
