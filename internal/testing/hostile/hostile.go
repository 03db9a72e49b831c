// Package hostile provides the responses of servers that try to exhaust their clients. A test passes each of them to a
// client and checks that it ends with a bounded error and reads a bounded number of bytes.
package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	// MaxSent bounds the bytes that a server can send before its client disconnects: a response bound of a megabyte or
	// so, with the buffers of HTTP and of the kernel at both ends.
	MaxSent = 24 << 20
	// most ends a response that its client reads without a bound.
	most = 300 << 20
)

// Server answers every request in one hostile way.
type Server struct {
	Name   string
	Status int // of the response
	sent   atomic.Int64
	answer func(*Server, http.ResponseWriter, *http.Request)
}

// Sent returns the number of bytes of bodies that the server has written.
func (s *Server) Sent() int64 { return s.sent.Load() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.answer(s, w, r) }

// Servers returns the hostile servers.
func Servers(t testing.TB) []*Server {
	t.Helper()
	blank, text := bytes.Repeat([]byte(" "), 1<<20), bytes.Repeat([]byte("a"), 1<<20)
	control := bytes.Repeat([]byte("\x1b[31m\n"), 1<<18)
	bomb := compressed(t, blank)
	long := strings.Repeat("h", 32<<10)
	status := []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` +
		strings.Repeat("m", 900<<10) + `"}`)
	return []*Server{
		{Name: "blanks", Status: 200, answer: body("application/json", blank)},
		{Name: "blanks of a failure", Status: 500, answer: body("text/plain", blank)},
		{Name: "one long string", Status: 200, answer: body("application/json", append([]byte(`"`), text...))},
		{Name: "control characters", Status: 502, answer: body("text/plain", control)},
		{Name: "open brackets", Status: 200, answer: body("application/json", bytes.Repeat([]byte("["), 1<<20))},
		{Name: "gzip bomb", Status: 200, answer: func(s *Server, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			s.write(w, bomb, 1)
		}},
		{Name: "a long Status", Status: 403, answer: func(s *Server, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			s.write(w, status, 1)
		}},
		{Name: "long headers", Status: 200, answer: func(s *Server, w http.ResponseWriter, _ *http.Request) {
			for i := range 40 {
				w.Header().Set(fmt.Sprint("X-", i), long)
			}
			s.write(w, []byte("{}"), 1)
		}},
		{Name: "redirects", Status: 307, answer: func(s *Server, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", r.URL.Path+"?"+long)
			s.write(w, text[:100], 1)
		}},
		{Name: "early hints", Status: 200, answer: func(s *Server, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", long)
			for range 200 {
				w.WriteHeader(http.StatusEarlyHints)
				s.sent.Add(int64(len(long)))
			}
			s.write(w, blank, 300)
		}},
	}
}

// body returns a response that continues until its client disconnects.
func body(contentType string, piece []byte) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		s.write(w, piece, most/len(piece))
	}
}

func (s *Server) write(w http.ResponseWriter, piece []byte, times int) {
	w.WriteHeader(s.Status)
	for range times {
		n, err := w.Write(piece)
		s.sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// compressed returns gzip of 300 MB of one piece.
func compressed(t testing.TB, piece []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for range most / len(piece) {
		if _, err := z.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// MaxError bounds the text of a client's error, in bytes: a foreign text with the additions of all layers.
const MaxError = 40 << 10

// Check fails the test if the error is missing or too long, or the server got rid of too much.
func (s *Server) Check(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", s.Name)
		return
	}
	s.CheckText(t, err.Error())
}

// CheckText is Check for a text in place of an error; it may be empty.
func (s *Server) CheckText(t testing.TB, text string) {
	t.Helper()
	if len(text) > MaxError {
		t.Errorf("%s: the error has %d bytes: %.200q...", s.Name, len(text), text)
	}
	if sent := s.Sent(); sent > MaxSent {
		t.Errorf("%s: the client took %d bytes", s.Name, sent)
	}
}
