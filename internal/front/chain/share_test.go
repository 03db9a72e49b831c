package chain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// slowReader is a client that accepts writes on command.
type slowReader struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

func (s slowReader) Write(p []byte) (int, error) {
	<-s.reads
	return s.ResponseRecorder.Write(p)
}

// A client that reads slowly keeps its seat for a moment, not for longer. The clock is synctest's.
func TestSlowReaderLendsItsSeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := flow.New(flow.Options{Total: 1}) // the level catch-all has one seat and no queue
		s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			size := 1
			if r.URL.Query().Has("limit") {
				size = 2 * stallAfter
			}
			_, _ = w.Write(make([]byte, size))
			_, _ = w.Write(make([]byte, size))
		}, func(c *Config) { c.Flow, c.Authorizer = shared, servetest.Everything{} })
		defer s.Close()
		other := func() *httptest.ResponseRecorder { return servetest.Do(s, "GET", "/api/v1/pods", "Test-User: other") }
		inFlight := func(want int) {
			t.Helper()
			if got := shared.InFlight(false); got != want {
				t.Errorf("%d requests in flight, want %d", got, want)
			}
		}

		slow := slowReader{httptest.NewRecorder(), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequest("GET", "/api/v1/pods?limit=500", http.NoBody)
			r.Header.Set("Test-User", "slow")
			s.ServeHTTP(slow, r)
		}()
		for turn := range 2 { // the request lends its seat in each write
			synctest.Wait()
			inFlight(1)
			w := other()
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
				t.Errorf("write %d: while it has its seat, another gets %d %v", turn, w.Code, w.Header())
			}
			if servetest.Status(t, w).Reason != "TooManyRequests" || len(w.Header()[flow.SchemaHeader]) != 1 {
				t.Errorf("write %d: %v %s", turn, w.Header(), w.Body)
			}
			time.Sleep(2 * patience) // of the bubble's clock
			synctest.Wait()
			if w := other(); w.Code != http.StatusOK {
				t.Errorf("write %d: when it has lent its seat, another gets %d", turn, w.Code)
			}
			slow.reads <- struct{}{}
		}
		<-done
		inFlight(0)
		if slow.Body.Len() != 4*stallAfter {
			t.Errorf("it read %d bytes", slow.Body.Len())
		}
		if w := other(); w.Code != http.StatusOK {
			t.Errorf("afterwards another gets %d", w.Code)
		}
	})
}

// TestSharesGiveBack checks that a request lends its seat while it waits for a webhook, and returns it after a panic.
func TestSharesGiveBack(t *testing.T) {
	t.Parallel()
	begun, webhook := make(chan struct{}), make(chan struct{})
	s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		switch r.URL.Query().Get("fieldManager") {
		case "waits":
			end := request.Wait(r.Context())
			close(begun)
			<-webhook
			end()
		case "panics":
			panic("a mistake")
		}
		_, _ = io.WriteString(w, "ok")
	}, func(c *Config) {
		c.Flow, c.Authorizer = flow.New(flow.Options{Total: 1}), servetest.Everything{}
		c.Metrics = prometheus.NewRegistry()
	})
	defer s.Close()
	done := make(chan int)
	go func() { done <- servetest.Do(s, "POST", "/api/v1/pods?fieldManager=waits", "Test-User: a").Code }()
	<-begun
	if w := servetest.Do(s, "POST", "/api/v1/pods?fieldManager=panics", "Test-User: b"); w.Code != http.StatusInternalServerError {
		t.Errorf("a panic: %d", w.Code)
	}
	w := servetest.Do(s, "GET", "/api/v1/pods", "Test-User: b")
	if w.Code != http.StatusOK || w.Header()[flow.LevelHeader] == nil {
		t.Errorf("beside one that waits, after one that panicked: %d %v", w.Code, w.Header())
	}
	close(webhook)
	if code := <-done; code != http.StatusOK {
		t.Errorf("the one that waited: %d", code)
	}
}
