package h2_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// block returns the header block of a request, with more fields.
func block(t *testing.T, method string, fields ...hpack.HeaderField) []byte {
	t.Helper()
	var out bytes.Buffer
	e := hpack.NewEncoder(&out)
	e.SetMaxDynamicTableSize(0) // each request stands for itself
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a"},
		{Name: ":path", Value: "/"},
	}, fields...) {
		must(t, e.WriteField(f))
	}
	return out.Bytes()
}

// get sends a request on a stream.
func (r *raw) get(t *testing.T, id uint32) {
	t.Helper()
	must(t, r.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block(t, "GET"), EndStream: true, EndHeaders: true,
	}))
}

// goAway reads frames until the server ends the connection, and returns its code.
func (r *raw) goAway(t *testing.T) http2.ErrCode {
	t.Helper()
	for {
		f, err := r.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ended without GOAWAY: %v", err)
		}
		if f, ok := f.(*http2.GoAwayFrame); ok {
			return f.ErrCode
		}
	}
}

// TestRapidReset resets requests while their handlers run: at most MaxStreams run, some more wait, then the connection
// ends.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	release := make(chan struct{})
	s := serve(t, true, func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
		running.Add(-1)
	})
	defer close(release)
	r := s.raw(t)
	request := block(t, "GET")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for id := uint32(1); id < 100_000; id += 2 {
			if r.WriteHeaders(http2.HeadersFrameParam{
				StreamID: id, BlockFragment: request, EndStream: true, EndHeaders: true,
			}) != nil || r.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return // the server has ended the connection
			}
		}
	}()
	if code := r.goAway(t); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("the connection ended with %s", code)
	}
	_ = r.Close()
	<-done
	if n := most.Load(); n > 100 {
		t.Errorf("%d handlers ran at the same time", n)
	}
}

// TestTooManyStreams checks that a request beyond MaxStreams is refused, so that the client repeats it elsewhere.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := serve(t, true, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	r := s.raw(t)
	for id := uint32(1); id <= 201; id += 2 {
		r.get(t, id)
	}
	for {
		f, err := r.ReadFrame()
		must(t, err)
		if f, ok := f.(*http2.RSTStreamFrame); ok {
			if f.StreamID != 201 || f.ErrCode != http2.ErrCodeRefusedStream {
				t.Errorf("stream %d: %s", f.StreamID, f.ErrCode)
			}
			return
		}
	}
}

// TestFloods sends frames that ask for responses, and reads none: the server holds little and ends the connection.
func TestFloods(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]func(*http2.Framer) error{
		"PING":     func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
		"SETTINGS": func(f *http2.Framer) error { return f.WriteSettings() },
		"PRIORITY of itself": func(f *http2.Framer) error {
			return f.WritePriority(7, http2.PriorityParam{StreamDep: 7})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveOn(t, narrow{listen(t)}, true, func(http.ResponseWriter, *http.Request) {})
			var frames bytes.Buffer
			f := http2.NewFramer(&frames, nil)
			for range 10_000 {
				must(t, flood(f))
			}
			r := s.raw(t)
			for {
				if _, err := r.Write(frames.Bytes()); err != nil {
					return
				}
			}
		})
	}
}

// TestSlowReader checks how much the server holds for clients that do not read a response without end.
func TestSlowReader(t *testing.T) {
	var blocked sync.WaitGroup
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		defer blocked.Done()
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	const clients = 20
	blocked.Add(clients)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conns := make([]*raw, clients)
	for i := range conns {
		conns[i] = s.raw(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
		must(t, conns[i].WriteWindowUpdate(0, 1<<30))
		conns[i].get(t, 1)
		_, err := conns[i].ReadFrame() // the response has begun
		must(t, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := (int64(after.HeapInuse) - int64(before.HeapInuse)) / clients; held > 1<<20 {
		t.Errorf("the server and the test hold %d bytes for each client", held)
	}
	for _, c := range conns {
		must(t, c.Close())
	}
	blocked.Wait() // each write has failed
}

// TestLargeHeader checks that a header above the limit is a 431, and one far above it ends the connection.
func TestLargeHeader(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	req, err := http.NewRequest("GET", s.url("/"), nil)
	must(t, err)
	req.Header.Set("Large", strings.Repeat("x", 1<<20+1000))
	resp, err := s.client(t).Do(req)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
	r := s.raw(t)
	must(t, r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}))
	for r.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 16<<10)) == nil { // :method, without end
	}
}

// TestShutdown checks that running requests finish, that later ones go elsewhere, and that the connection then ends.
func TestShutdown(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	s := serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "complete")
	})
	r := s.raw(t)
	r.get(t, 1)
	<-begun
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	if code := r.goAway(t); code != http2.ErrCodeNo {
		t.Errorf("GOAWAY with %s", code)
	}
	r.get(t, 3) // ignored
	close(release)
	var body []byte
	for {
		f, err := r.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if f.Header().StreamID == 3 {
			t.Errorf("a response behind GOAWAY: %v", f)
		}
		if f, ok := f.(*http2.DataFrame); ok {
			body = append(body, f.Data()...)
		}
	}
	if string(body) != "complete" {
		t.Errorf("the response is %q", body)
	}
	must(t, r.Close())
	must(t, <-ended)
}

// TestBodyWindow checks that a client may not send more of a body than the window, and that reading opens it again.
func TestBodyWindow(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	s := serve(t, true, func(_ http.ResponseWriter, r *http.Request) {
		<-read
		_, _ = io.Copy(io.Discard, r.Body)
	})
	body := bytes.NewReader(make([]byte, 10<<20)) // three windows
	sent := make(chan error, 1)
	go func() {
		r, err := s.client(t).Post(s.url("/"), "text/plain", body)
		if err == nil {
			err = r.Body.Close()
		}
		sent <- err
	}()
	close(read)
	must(t, <-sent)

	over := serve(t, true, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r := over.raw(t)
	must(t, r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(t, "POST"), EndHeaders: true}))
	go func() {
		for r.WriteData(1, false, make([]byte, 16<<10)) == nil {
		}
	}()
	for {
		f, err := r.ReadFrame()
		if err != nil {
			t.Fatal("the connection ended without an error of flow control")
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			if f.ErrCode != http2.ErrCodeFlowControl {
				t.Errorf("reset with %s", f.ErrCode)
			}
			return
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeFlowControl {
				t.Errorf("GOAWAY with %s", f.ErrCode)
			}
			return
		}
	}
}

// TestWithoutPreface checks that a connection without HTTP/2's preface, or without settings, ends.
func TestWithoutPreface(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	for _, hello := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nmore bytes than the preface",
		http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678",
	} {
		c := s.dial(t)
		_, err := io.WriteString(c, hello)
		must(t, err)
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", hello[:10], err)
		}
	}
}
