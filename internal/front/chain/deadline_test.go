package chain

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

func TestDeadline(t *testing.T) {
	t.Parallel()
	wait := func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
	for _, tc := range []struct {
		name   string
		target string
		handle func(w http.ResponseWriter, r *http.Request)
		took   time.Duration
		abort  bool
	}{
		{"nothing written", "/api/v1/pods", func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) }, time.Minute,
			false},
		{"error written", "/api/v1/pods",
			func(w http.ResponseWriter, r *http.Request) { codec.WriteError(w, r, wait(r)) }, time.Minute, false},
		{"error written just in time", "/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
			codec.WriteError(w, r, apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0))
			_ = wait(r)
		}, time.Minute, false},
		{"answer written too late", "/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
			_ = wait(r)
			w.Header().Set("Content-Type", "text/x")
			w.Header().Set("Content-Length", "2")
			if _, err := io.WriteString(w, "ok"); !errors.Is(err, http.ErrHandlerTimeout) {
				panic(err)
			}
		}, time.Minute, false},
		{"own timeout", "/api/v1/pods?timeout=3s", func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) },
			3 * time.Second, false},
		{"own timeout is too long", "/api/v1/pods?timeout=3h",
			func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) }, time.Minute, false},
		{"panic after it", "/api/v1/pods", func(_ http.ResponseWriter, r *http.Request) { panic(wait(r)) }, time.Minute,
			false},
		{"half an answer", "/api/v1/pods",
			func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "half"); _ = wait(r) }, time.Minute,
			true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newChain(t,
					func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { tc.handle(w, r) }, nil)
				defer s.close()
				began := time.Now()
				defer func() {
					if took := time.Since(began); took != tc.took {
						t.Errorf("took %v, want %v", took, tc.took)
					}
					if aborted := recover() == http.ErrAbortHandler; aborted != tc.abort {
						t.Errorf("aborted: %v", aborted)
					}
				}()
				w := servetest.Do(s, "GET", tc.target)
				if strings.HasPrefix(tc.name, "panic") {
					if got := servetest.Status(t, w); got.Code != 500 {
						t.Errorf("status %+v", got)
					}
					return
				}
				var got metav1.Status
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				kind, media := "", "text/plain; charset=utf-8"
				if strings.HasSuffix(tc.name, "just in time") {
					kind, media = "Status", "application/json"
				}
				if got.Code != 504 || got.Reason != metav1.StatusReasonTimeout ||
					got.Message != "Timeout: request did not complete within the allotted timeout" {
					t.Errorf("status %+v", got)
				}
				if got.Kind != kind || w.Header().Get("Content-Type") != media || w.Header().Get("Audit-Id") == "" {
					t.Errorf("kind %q, headers %v", got.Kind, w.Header())
				}
			})
		})
	}
}

// deadlines records the deadlines set on its connection. Its client reads only the beginning of a response.
type deadlines struct {
	*httptest.ResponseRecorder
	read  bool
	write chan struct{} // closed when that deadline is set
}

func (d *deadlines) SetReadDeadline(time.Time) error  { d.read = true; return nil }
func (d *deadlines) SetWriteDeadline(time.Time) error { close(d.write); return nil }

func (d *deadlines) Write(p []byte) (int, error) {
	n, err := d.ResponseRecorder.Write(p)
	if n > stallAfter {
		<-d.write
		return n, os.ErrDeadlineExceeded
	}
	return n, err
}

func (d *deadlines) ended() bool {
	select {
	case <-d.write:
		return true
	default:
		return false
	}
}

// TestDeadlineEndsWaiting checks the effects of the deadline on a connection: it ends reads of a body, and long writes
// that the client may not be reading. A short response, such as a Status, is sent even if the deadline passes at the
// same moment.
func TestDeadlineEndsWaiting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		body        string
		answer      int
		code        int
		read, write bool
	}{
		{"no body, short error", "", 100, 504, false, false},
		{"body, short error", "{}", 100, 504, true, false},
		{"body, no answer", "{}", 0, 0, true, false},
		{"no body, long answer", "", stallAfter + 1, 200, false, true},
		{"body, long answer", "{}", stallAfter + 1, 200, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
					if tc.code != 0 {
						w.WriteHeader(tc.code)
						_, _ = w.Write(make([]byte, tc.answer))
					}
					<-r.Context().Done()
					synctest.Wait() // all work bound to the context has ended
				}, nil)
				defer s.close()
				defer func() {
					if aborted := recover() == http.ErrAbortHandler; aborted != (tc.code == 200) {
						t.Errorf("aborted: %v", aborted)
					}
				}()
				r := httptest.NewRequest("PUT", "/api/v1/namespaces/default/pods/x", strings.NewReader(tc.body))
				r.Body, r.ProtoMajor = io.NopCloser(r.Body), 2 // as in HTTP/2
				r.Header.Set("Test-User", "root")
				w := &deadlines{ResponseRecorder: httptest.NewRecorder(), write: make(chan struct{})}
				defer func() {
					if w.read != tc.read || w.ended() != tc.write {
						t.Errorf("read deadline %v, write deadline %v", w.read, w.ended())
					}
				}()
				s.ServeHTTP(w, r)
				if w.Code != 504 {
					t.Errorf("code %d", w.Code)
				}
			})
		})
	}
}

func TestWatchHasNoDeadlineAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			if _, ok := r.Context().Deadline(); ok {
				t.Error("a watch has a deadline")
			}
			_, _ = io.WriteString(w, "event")
			<-r.Context().Done()
		}, nil)
		began := time.Now()
		time.AfterFunc(24*time.Hour, s.close)
		w := servetest.Do(s, "GET", "/api/v1/pods?watch=1&timeout=1s")
		if w.Body.String() != "event" || time.Since(began) != 24*time.Hour {
			t.Errorf("%q after %v", w.Body, time.Since(began))
		}
	})
}

// TestLongRunningByResource checks that the resource decides whether a request for a subresource has a deadline, not
// the name of the subresource.
func TestLongRunningByResource(t *testing.T) {
	t.Parallel()
	for target, long := range map[string]bool{
		"/api/v1/namespaces/n/pods/x/exec":         true,
		"/api/v1/namespaces/n/pods/x/status":       false,
		"/apis/a.example.com/v1/unknown/x/exec":    false,
		"/apis/a.example.com/v1/widgets/x/log":     false,
		"/apis/a.example.com/v1/widgets/x/console": true,
		"/api/v1/pods?watch=1":                     true,
		"/api/v1/proxy/namespaces/n/pods/x":        false,
	} {
		s := newChain(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			if _, limited := r.Context().Deadline(); limited == long {
				t.Errorf("%s: a deadline: %v", target, limited)
			}
		}, func(c *Config) {
			c.LongRunning = func(i *request.Info) bool {
				return i.Resource == "pods" && i.Subresource == "exec" || i.Subresource == "console"
			}
		})
		servetest.Do(s, http.MethodGet, target)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	s := newChain(t, text("objects"), nil)
	s.close()
	w := servetest.Do(s, "GET", "/api/v1/pods")
	if got := servetest.Status(t, w); got.Code != 503 || got.Reason != metav1.StatusReasonServiceUnavailable ||
		got.Message != "apiserver is shutting down" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%+v, headers %v", got, w.Header())
	}
	if w := servetest.Do(s, "GET", "/livez"); w.Code != 200 {
		t.Errorf("livez %d", w.Code)
	}
}
