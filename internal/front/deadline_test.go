package front

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// plain terminates the TLS of an HTTP/1.1 server: crypto/tls would try for 5 more seconds to send its farewell to a
// client that does not read.
func plain(protocol int) func(*Config) {
	if protocol == 2 {
		return nil
	}
	return func(c *Config) { c.Authorizer, c.TLS = servetest.Everything{}, nil }
}

// scheme is the beginning of the URLs of a server that plain has changed.
func scheme(protocol int) string {
	return map[int]string{1: "http://localhost", 2: "https://localhost"}[protocol]
}

// A client that sends only a part of its body gets its 504 although the handler waits for the rest.
func TestDeadlineEndsStalledBody(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		synctest.Test(t, func(t *testing.T) {
			s := runPiped(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
				if _, err := io.ReadAll(r.Body); err != nil {
					codec.WriteError(w, r, err)
				}
			}, plain(protocol))
			defer s.stop(t)
			body, end := io.Pipe()
			defer end.Close()
			go func() { _, _ = io.WriteString(end, "{") }()
			began := time.Now()
			resp, err := s.client(t, protocol).Post(scheme(protocol)+"/api/v1/namespaces/n/pods?timeout=10s",
				"application/json", body)
			must(t, err)
			defer resp.Body.Close()
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 504 || !strings.Contains(string(got), "did not complete within the allotted timeout") {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			if took := time.Since(began); took < 10*time.Second || took > 12*time.Second { // by the test's own clock
				t.Errorf("the answer came after %s", took)
			}
		})
	})
}

// TestDeadlineEndsStalledAnswer checks that a client that does not read its response does not block the handler beyond
// the deadline.
func TestDeadlineEndsStalledAnswer(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := runPiped(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
				chunk := make([]byte, 1<<20)
				for {
					if _, err := w.Write(chunk); err != nil {
						ended <- err
						return
					}
				}
			}, plain(protocol))
			defer s.stop(t)
			began := time.Now()
			resp, err := s.client(t, protocol).Get(scheme(protocol) + "/api/v1/pods?timeout=10s")
			must(t, err)
			defer resp.Body.Close()
			if err := <-ended; err == nil {
				t.Error("no error")
			}
			if took := time.Since(began); took < 10*time.Second || took > 12*time.Second { // by the test's own clock
				t.Errorf("the handler was held for %s", took)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("the broken answer looks whole")
			}
		})
	})
}

// A fast request leaves no deadline behind on its connection.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write(make([]byte, 200<<10))
		}, nil)
		defer s.stop(t)
		c := s.client(t, 1)
		for range 3 {
			resp, err := c.Post("https://localhost/api/v1/namespaces/n/pods?timeout=10s", "application/json",
				strings.NewReader("{}"))
			must(t, err)
			n, err := io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil || n != 200<<10 {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
		// Longer than the deadlines of the requests before: it must not be cut by them.
		resp, err := c.Post("https://localhost/api/v1/namespaces/n/pods", "application/json",
			io.MultiReader(strings.NewReader("{"), late(20*time.Second)))
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("code %d", resp.StatusCode)
		}
	})
}

// late is a body that ends after some time.
type late time.Duration

func (l late) Read([]byte) (int, error) {
	time.Sleep(time.Duration(l)) // by the test's own clock
	return 0, io.EOF
}
