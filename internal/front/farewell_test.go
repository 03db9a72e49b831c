package front

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/request"
)

// pipes is a listener whose connections are pipes, so that a test's clock can stand still.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// shutdownTest is a server and clients in a bubble of package synctest, whose clock moves only while every goroutine
// waits.
type shutdownTest struct {
	*Server
	pki    *pki.PKI
	pipes  *pipes
	served chan error
}

func newShutdownTest(t *testing.T, resources Handler) *shutdownTest {
	certificates, err := pki.Open(pki.Config{})
	must(t, err)
	s := &shutdownTest{pki: certificates, pipes: newPipes(), served: make(chan error, 1)}
	s.Server = newServer(t, resources, func(c *Config) {
		c.Authenticator = authn.New(authn.Config{ClientRoots: certificates.ClientRoots})
		c.TLS = certificates.TLSConfig()
	})
	go func() { s.served <- s.Serve(s.pipes) }()
	return s
}

func (s *shutdownTest) client(t *testing.T, protocol int) *http.Client {
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(s.pki.ServerCA())
	certificate, err := tls.X509KeyPair(s.pki.Admin())
	must(t, err)
	config.Certificates = []tls.Certificate{certificate}
	transport := &http.Transport{TLSClientConfig: config, DialContext: s.pipes.dial, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(protocol == 1)
	transport.Protocols.SetHTTP2(protocol == 2)
	return &http.Client{Transport: transport}
}

// Shutdown of a server without running requests waits for nothing: clients need no second to read the farewell,
// watches end, and a connection without a request does not get five seconds for one.
func TestShutdownTakesNoTime(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		synctest.Test(t, func(t *testing.T) {
			s := newShutdownTest(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
				if info.Verb == "watch" {
					_, _ = io.WriteString(w, "event\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			})
			idle, err := s.client(t, protocol).Get("https://localhost/api/v1/pods")
			must(t, err)
			_ = idle.Body.Close()
			if protocol == 2 {
				watch, err := s.client(t, protocol).Get("https://localhost/api/v1/pods?watch=1")
				must(t, err)
				defer watch.Body.Close()
				_, err = bufio.NewReader(watch.Body).ReadString('\n')
				must(t, err)
			}
			spare, err := s.pipes.dial(t.Context(), "", "") // no request, not even a handshake
			must(t, err)
			defer spare.Close()
			synctest.Wait()

			began := time.Now()
			must(t, s.Shutdown(t.Context()))
			must(t, <-s.served)
			if took := time.Since(began); took > 100*time.Millisecond { // of the test's own clock
				t.Errorf("Shutdown took %s", took)
			}
		})
	})
}

// A request that runs when the shutdown begins gets its whole answer, however long both take, and nothing is waited
// for after it.
func TestShutdownAfterARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		whole := bytes.Repeat([]byte("answer "), 100<<10)
		s := newShutdownTest(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
			<-leave
			_, _ = w.Write(whole)
		})
		c := s.client(t, 2)
		answers := make(chan []byte, 1)
		go func() {
			resp, err := c.Get("https://localhost/api/v1/pods")
			if err != nil {
				answers <- []byte(err.Error())
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			answers <- body
		}()
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second) // of the test's own clock
		if n := len(stopped); n > 0 {
			t.Errorf("Shutdown did not wait: %v", <-stopped)
		}
		began := time.Now()
		close(leave)
		if got := <-answers; !bytes.Equal(got, whole) {
			t.Errorf("the answer is not whole: %d bytes, %.80q", len(got), got)
		}
		must(t, <-stopped)
		must(t, <-s.served)
		if took := time.Since(began); took > 600*time.Millisecond { // net/http looks twice a second
			t.Errorf("Shutdown took %s after the last request", took)
		}
	})
}

// The moment is found whatever the pieces are in which frames come.
func TestFarewellFollowsFrames(t *testing.T) {
	t.Parallel()
	frames := func(write func(*http2.Framer)) []byte {
		var b bytes.Buffer
		write(http2.NewFramer(&b, nil))
		return b.Bytes()
	}
	request := func(stream uint32) func(*http2.Framer) {
		return func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: stream, BlockFragment: []byte("x"), EndStream: true, EndHeaders: true,
			})
		}
	}
	both := func(steps ...func(*http2.Framer)) func(*http2.Framer) {
		return func(f *http2.Framer) {
			for _, step := range steps {
				step(f)
			}
		}
	}
	data := func(stream uint32, end bool) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteData(stream, end, make([]byte, 50)) }
	}
	reset := func(stream uint32) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteRSTStream(stream, http2.ErrCodeCancel) }
	}
	goAway := func(last uint32) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteGoAway(last, http2.ErrCodeNo, []byte("debug")) }
	}
	settings := func(f *http2.Framer) { _ = f.WriteSettings() }
	type direction struct {
		in    bool
		what  func(*http2.Framer)
		wants bool // complete after it
	}
	for name, script := range map[string][]direction{
		"idle": {{what: both(settings, goAway(0)), wants: true}},
		"answered": {{in: true, what: both(settings, request(1))},
			{what: both(settings, data(1, false), data(1, true))}, {what: goAway(1), wants: true}},
		"answer after": {{in: true, what: request(1)}, {what: goAway(1)}, {what: data(1, false)},
			{what: both(data(1, true), settings), wants: true}},
		"two streams": {{in: true, what: both(request(1), request(3))},
			{what: both(goAway(3), data(3, true))}, {what: data(1, true), wants: true}},
		"reset by the client": {{in: true, what: request(1)}, {what: goAway(1)}, {in: true, what: reset(1)},
			{what: settings}, {what: reset(1), wants: true}},
		"reset before": {{in: true, what: both(request(1), reset(1))}, {what: goAway(1), wants: true}},
		"too late": {{in: true, what: both(request(1), request(3))}, {what: data(1, true)},
			{what: goAway(1), wants: true}},
		"after the farewell": {{what: goAway(0), wants: true}, {in: true, what: request(1)}, {what: settings},
			{what: reset(1), wants: true}},
		"trailers of the request": {{in: true, what: both(request(1), data(1, false))}, {what: data(1, true)},
			{in: true, what: request(1)}, {what: goAway(1), wants: true}},
	} {
		for _, piece := range []int{1, 7, 9, 13, 1 << 20} {
			f := newFarewell()
			f.read([]byte(http2.ClientPreface))
			for i, step := range script {
				complete := false
				for b := frames(step.what); len(b) > 0; {
					n := min(piece, len(b))
					if step.in {
						f.read(b[:n])
					} else if f.written(b[:n]) {
						complete = true
					}
					b = b[n:]
				}
				if complete != step.wants {
					t.Errorf("%s, in pieces of %d: step %d: complete %v", name, piece, i, complete)
				}
			}
		}
	}
}
