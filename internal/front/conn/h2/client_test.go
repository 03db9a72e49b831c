package h2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestClient sends requests of Go's client to handlers that use each function of a ResponseWriter.
func TestClient(t *testing.T) {
	t.Parallel()
	handlers := http.NewServeMux()
	handlers.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Length", fmt.Sprint(r.ContentLength))
		w.Header().Set("Trailing", r.Trailer.Get("Sum"))
		_, _ = w.Write(body)
	})
	handlers.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		w.Header().Set("Late", "too late")
		_, _ = io.WriteString(w, "body")
	})
	handlers.HandleFunc("/trailers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Sum", "4")
		w.Header().Set(http.TrailerPrefix+"Other", "5")
	})
	handlers.HandleFunc("/panic", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	handlers.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	})
	handlers.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "page")
	})
	large := strings.Repeat("0123456789", 1<<20)
	for _, c := range []struct {
		name, method, path string
		body               io.Reader
		status             int
		want               string // of the body; "error" if reading it fails
		header             map[string]string
	}{
		{"no body", "GET", "/echo", nil, 200, "", map[string]string{"Length": "0", "Content-Type": ""}},
		{
			"a small body", "POST", "/echo", strings.NewReader("hello"), 200, "hello",
			map[string]string{"Length": "5", "Content-Length": "5", "Content-Type": "text/plain; charset=utf-8"},
		},
		{
			"a large body", "POST", "/echo", strings.NewReader(large), 200, large,
			map[string]string{"Content-Length": ""},
		},
		{
			"a body of unknown length", "POST", "/echo", io.MultiReader(strings.NewReader("ab")), 200, "ab",
			map[string]string{"Length": "-1"},
		},
		{"HEAD", "HEAD", "/status/200", nil, 200, "", map[string]string{"Content-Length": "4", "Late": ""}},
		{"no content", "GET", "/status/204", nil, 204, "", map[string]string{"Content-Length": ""}},
		{"not modified", "GET", "/status/304", nil, 304, "", nil},
		{"an error", "GET", "/status/500", nil, 500, "body", nil},
		{"trailers", "GET", "/trailers", nil, 200, "body", map[string]string{"Trailer:Sum": "4", "Trailer:Other": "5"}},
		{"a panic", "GET", "/panic", nil, 200, "error", nil},
		{"a body shorter than announced", "GET", "/short", nil, 0, "error", nil},
		{"early hints", "GET", "/hints", nil, 200, "page", map[string]string{"Link": "</style.css>"}},
	} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, direct %t", c.name, direct), func(t *testing.T) {
				if seeker, ok := c.body.(io.Seeker); ok {
					_, _ = seeker.Seek(0, io.SeekStart)
				} else if c.body != nil && direct {
					c.body = io.MultiReader(strings.NewReader("ab"))
				}
				s := serve(t, direct, handlers.ServeHTTP)
				req, err := http.NewRequest(c.method, s.url(c.path), c.body)
				must(t, err)
				resp, err := s.client(t).Do(req)
				if err != nil && c.want == "error" {
					return
				}
				must(t, err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if (err != nil) != (c.want == "error") {
					t.Errorf("error %v after %d bytes", err, len(body))
				}
				if err == nil && string(body) != c.want {
					t.Errorf("body %.80q, expected %.80q", body, c.want)
				}
				if c.status != 0 && resp.StatusCode != c.status {
					t.Errorf("status %d, expected %d", resp.StatusCode, c.status)
				}
				for name, want := range c.header {
					header := resp.Header
					if key, ok := strings.CutPrefix(name, "Trailer:"); ok {
						header, name = resp.Trailer, key
					}
					if got := header.Get(name); got != want {
						t.Errorf("%s is %q, expected %q", name, got, want)
					}
				}
			})
		}
	}
}

// TestContinue checks that a client that waits for 100 Continue receives it when the handler reads, and no sooner.
func TestContinue(t *testing.T) {
	t.Parallel()
	var continued atomic.Bool
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if continued.Load() {
			t.Error("the client may send before the handler reads")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "hello" {
			t.Errorf("read %q, %v", body, err)
		}
	})
	trace := &httptrace.ClientTrace{Got100Continue: func() { continued.Store(true) }}
	client := s.client(t)
	for path, want := range map[string]bool{"/refuse": false, "/read": true} {
		continued.Store(false)
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "POST", s.url(path),
			strings.NewReader("hello"))
		must(t, err)
		req.Header.Set("Expect", "100-continue")
		resp, err := client.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		if continued.Load() != want {
			t.Errorf("%s: 100 Continue %t, expected %t", path, continued.Load(), want)
		}
	}
}

// TestTrailersOfRequest checks that a handler sees the announced trailers of a request behind its body, and no others.
func TestTrailersOfRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Trailer) != 1 || r.Trailer["Sum"] != nil {
			t.Errorf("announced %v", r.Trailer)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.Trailer.Get("Sum"))
	})
	req, err := http.NewRequest("POST", s.url("/"), io.NopCloser(strings.NewReader("hello")))
	must(t, err)
	req.Trailer = http.Header{"Sum": {"5"}}
	resp, err := s.client(t).Do(req)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if string(body) != "5" {
		t.Errorf("the trailer is %q", body)
	}
}

// TestLeavingClient checks that a request ends with its client: the context, a read and a write that waits.
func TestLeavingClient(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(http.ResponseWriter, *http.Request) error{
		"context": func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		},
		"read": func(_ http.ResponseWriter, r *http.Request) error { _, err := io.ReadAll(r.Body); return err },
		"write": func(w http.ResponseWriter, _ *http.Request) error {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil { // the client does not read
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, ended := make(chan struct{}), make(chan error, 1)
			s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				close(begun)
				ended <- wait(w, r)
			})
			ctx, cancel := context.WithCancel(t.Context())
			var body io.Reader
			if name == "read" {
				pipe, unended := io.Pipe()
				stop := context.AfterFunc(ctx, func() { _ = unended.CloseWithError(context.Canceled) })
				defer stop()
				body = pipe
			}
			req, err := http.NewRequestWithContext(ctx, "POST", s.url("/"), body)
			must(t, err)
			resp, err := s.client(t).Do(req)
			must(t, err)
			defer resp.Body.Close()
			<-begun
			cancel()
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		})
	}
}

// TestDeadlines checks the deadlines of a handler: a late read and a late write return, and the write resets the
// stream.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 2)
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.Flush()
		_ = control.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := r.Body.Read(make([]byte, 1))
		failed <- err
		_ = control.SetWriteDeadline(time.Now().Add(time.Hour))
		_ = control.SetWriteDeadline(time.Now().Add(time.Millisecond))
		for err = nil; err == nil; {
			_, err = w.Write(make([]byte, 1<<20))
		}
		failed <- err
	})
	body, unended := io.Pipe()
	defer unended.Close()
	resp, err := s.client(t).Post(s.url("/"), "text/plain", body)
	must(t, err)
	defer resp.Body.Close()
	for _, which := range []string{"read", "write"} {
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", which, err)
		}
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the client takes the response for complete")
	}
}

// TestManyStreams sends bodies on all streams of a connection at the same time; each comes back whole.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 10_000)
		for {
			n, err := r.Body.Read(buffer)
			if _, failed := w.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
			if n%3 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	client := s.client(t)
	results := make(chan error)
	const requests = 150
	for i := range requests {
		go func() {
			want := bytes.Repeat([]byte{byte(i)}, 1+i*7919%200_000)
			resp, err := client.Post(s.url("/"), "text/plain", bytes.NewReader(want))
			if err == nil {
				var got []byte
				got, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err == nil && !bytes.Equal(got, want) {
					err = fmt.Errorf("request %d: %d bytes came back, %d were sent", i, len(got), len(want))
				}
			}
			results <- err
		}()
	}
	for range requests {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestInformation checks that a client sees informational responses.
func TestInformation(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
	})
	var hints []string
	req, err := http.NewRequest("GET", s.url("/"), nil)
	must(t, err)
	req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, header["Link"]))
			return nil
		},
	}))
	resp, err := s.client(t).Do(req)
	must(t, err)
	_ = resp.Body.Close()
	if len(hints) != 1 || hints[0] != "103 [</style.css>]" {
		t.Errorf("hints %v", hints)
	}
}
