package chain

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/reuse"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// over responds with a text and declares that no reference to the request remains.
func over(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
	request.ScopeOf(r.Context()).Over = true
	_, _ = io.WriteString(w, "ok")
}

// TestRecycles checks which exchanges are recycled: only those without remaining references.
func TestRecycles(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/a/pods/x"
	for _, tc := range []struct {
		name, method, path string
		handle             handler
		recycled           bool
	}{
		{"over", "GET", path, over, true},
		{"write", "DELETE", path, over, false},
		{"not over", "GET", path, text("ok"), false},
		{"refused", "GET", path + "?timeout=soon", over, false},
		{"watch", "GET", "/api/v1/namespaces/a/pods?watch=1", over, false},
		{"no answer", "GET", path, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			request.ScopeOf(r.Context()).Over = true
		}, false},
		{"waits", "GET", path, func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
			_ = r.Context().Done()
			over(w, r, info, u)
		}, false},
		{"others wait", "GET", path, func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
			_, cancel := context.WithCancel(r.Context())
			defer cancel()
			over(w, r, info, u)
		}, false},
		{"panics", "GET", path, func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
			over(w, r, info, u)
			panic(http.ErrAbortHandler)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x := new(exchange)
			c := newChain(t, tc.handle, nil)
			c.exchanges = reuse.New(func() *exchange { return x }, nil)
			func() {
				defer func() { _ = recover() }()
				servetest.Do(c, tc.method, tc.path)
			}()
			if cleared := x.w == nil && x.r == nil && x.user == nil && x.ctx == nil; cleared != tc.recycled {
				t.Errorf("recycled: %v", cleared)
			}
		})
	}
}

// TestRecycledDoNotMix runs concurrent reads of many users, and some requests outlive their handlers. Each handler must
// see its own request, and each line of the log must be about one of them.
func TestRecycledDoNotMix(t *testing.T) {
	t.Parallel()
	a, events := newAuditor(t, "- level: Metadata\n", "", audit.ModeBlocking)
	var after sync.WaitGroup
	c := newChain(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
		ctx := r.Context()
		scope := request.ScopeOf(ctx)
		if info.Name != u.GetName() || scope.AuditID != "of-"+u.GetName() || r.URL.Path != info.Path {
			t.Errorf("%s reads %s, with the id %s", u.GetName(), info.Name, scope.AuditID)
		}
		request.RecordOf(ctx).Annotate("read-by", u.GetName())
		scope.Over = rand.IntN(4) > 0
		if !scope.Over {
			after.Go(func() {
				<-ctx.Done()
				if id := request.ScopeOf(ctx).AuditID; id != scope.AuditID || ctx.Err() == nil {
					t.Errorf("after the answer %s has the id %s", scope.AuditID, id)
				}
			})
		}
		_, _ = io.WriteString(w, info.Name)
	}, func(c *Config) { c.Audit, c.Authorizer = a, servetest.Everything{} })
	const users, reads = 16, 300
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() {
			name := fmt.Sprintf("user-%d", n)
			for i := range reads {
				r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/"+name, http.NoBody)
				r.ProtoMajor = 2 // in HTTP/1 the end of sending is unknown, so nothing is recorded late
				r.Header.Set("Test-User", name)
				r.Header.Set("Audit-Id", "of-"+name)
				w := httptest.NewRecorder()
				c.ServeHTTP(w, r)
				if w.Body.String() != name || w.Header().Get("Audit-Id") != "of-"+name {
					t.Errorf("%s reads %q, %v", name, w.Body, w.Header())
				}
				if i%50 == 0 {
					a.Flush()
				}
			}
		})
	}
	all.Wait()
	after.Wait()
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	stages := map[auditv1.Stage]int{}
	for _, e := range events() {
		name := e.User.Username
		if string(e.AuditID) != "of-"+name || e.ObjectRef.Name != name || !strings.HasSuffix(e.RequestURI, "/"+name) ||
			e.Stage == auditv1.StageResponseComplete && e.Annotations["read-by"] != name {
			t.Fatalf("%+v", e)
		}
		stages[e.Stage]++
	}
	if n := users * reads; len(stages) != 2 || stages[auditv1.StageRequestReceived] != n ||
		stages[auditv1.StageResponseComplete] != n {
		t.Errorf("events %v, of %d requests", stages, n)
	}
}
