package forward_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/bowsprit/bowsprit/internal/net/forward"
)

// pipe is a body with reads that wait for its writer. It signals the start of a read.
type pipe struct {
	*io.PipeReader
	begun chan struct{}
	once  sync.Once
	unit  int // read without a lock, as a body of HTTP/2 is: the race detector sees concurrent readers
}

func (p *pipe) Read(b []byte) (int, error) {
	p.once.Do(func() { close(p.begun) })
	n, err := p.PipeReader.Read(b)
	p.unit += n
	return n, err
}

// TestLend answers while a transport waits for more of the body. The second after which Lend closes the body passes in
// the test's own time, only once all goroutines wait.
func TestLend(t *testing.T) {
	for name, late := range map[string]bool{"the client goes on": false, "the client sends no more": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { lend(t, late) }) })
	}
}

func lend(t *testing.T, late bool) {
	reader, writer := io.Pipe()
	body := &pipe{PipeReader: reader, begun: make(chan struct{})}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.ProtoMajor, r.ContentLength = 2, 6
	transport := make(chan error)
	forward.Lend(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		go func() {
			_, err := io.Copy(io.Discard, r.Body)
			transport <- err
		}()
		<-body.begun
		if !late {
			go func() { _, _ = writer.Write([]byte("sixbyt")) }()
		}
	}), httptest.NewRecorder(), r)
	if late != (body.unit == 0) {
		t.Errorf("%d bytes have been read", body.unit)
	}
	err := <-transport
	if late && !errors.Is(err, io.ErrClosedPipe) || err == nil {
		t.Errorf("the transport's copy ends with %v", err)
	}
	if !late {
		go writer.CloseWithError(io.EOF)
		if rest, err := io.ReadAll(r.Body); err != nil || len(rest) != 0 {
			t.Errorf("Lend left %q, %v to the server", rest, err)
		}
	}
}

// TestLendNothing checks that requests without a body that a transport could read too long are unchanged.
func TestLendNothing(t *testing.T) {
	for name, prepare := range map[string]func(*http.Request){
		"HTTP/1":     func(r *http.Request) { r.ContentLength = 6 },
		"no body":    func(r *http.Request) { r.ProtoMajor, r.Body = 2, nil },
		"no content": func(r *http.Request) { r.ProtoMajor, r.ContentLength = 2, 0 },
	} {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		prepare(r)
		forward.Lend(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
			if got != r {
				t.Errorf("%s: another request", name)
			}
		}), httptest.NewRecorder(), r)
	}
}
