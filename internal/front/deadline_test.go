package front

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/codec"
	"github.com/bowsprit/bowsprit/internal/request"
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
		{"nothing written", "/api/v1/pods", func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) }, time.Minute, false},
		{"error written", "/api/v1/pods", func(w http.ResponseWriter, r *http.Request) { codec.WriteError(w, r, wait(r)) }, time.Minute, false},
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
		{"own timeout", "/api/v1/pods?timeout=3s", func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) }, 3 * time.Second, false},
		{"own timeout is too long", "/api/v1/pods?timeout=3h", func(_ http.ResponseWriter, r *http.Request) { _ = wait(r) }, time.Minute, false},
		{"panic after it", "/api/v1/pods", func(_ http.ResponseWriter, r *http.Request) { panic(wait(r)) }, time.Minute, false},
		{"half an answer", "/api/v1/pods", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "half"); _ = wait(r) }, time.Minute, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { tc.handle(w, r) }, nil)
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
				w := do(s, "GET", tc.target)
				got := status(t, w)
				if strings.HasPrefix(tc.name, "panic") {
					if got.Code != 500 {
						t.Errorf("status %+v", got)
					}
					return
				}
				if got.Code != 504 || got.Reason != metav1.StatusReasonTimeout || got.Message != "Timeout: request did not complete within the allotted timeout" {
					t.Errorf("status %+v", got)
				}
				if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Audit-Id") == "" {
					t.Errorf("headers %v", w.Header())
				}
			})
		})
	}
}

func TestWatchHasNoDeadlineAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			if _, ok := r.Context().Deadline(); ok {
				t.Error("a watch has a deadline")
			}
			_, _ = io.WriteString(w, "event")
			<-r.Context().Done()
		}, nil)
		began := time.Now()
		time.AfterFunc(24*time.Hour, s.close)
		w := do(s, "GET", "/api/v1/pods?watch=1&timeout=1s")
		if w.Body.String() != "event" || time.Since(began) != 24*time.Hour {
			t.Errorf("%q after %v", w.Body, time.Since(began))
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	s := newServer(t, text("objects"), nil)
	s.close()
	w := do(s, "GET", "/api/v1/pods")
	if got := status(t, w); got.Code != 503 || got.Reason != metav1.StatusReasonServiceUnavailable || got.Message != "apiserver is shutting down" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%+v, headers %v", got, w.Header())
	}
	if w := do(s, "GET", "/livez"); w.Code != 200 {
		t.Errorf("livez %d", w.Code)
	}
	if w := do(s, "GET", "/readyz"); w.Code != 500 || !strings.Contains(w.Body.String(), "[-]shutdown failed") {
		t.Errorf("readyz %d %s", w.Code, w.Body)
	}
	if w := do(s, "GET", "/readyz/shutdown"); w.Body.String() != "internal server error: process is shutting down\n" {
		t.Errorf("readyz/shutdown %q", w.Body)
	}
}
