package componentstatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestFind checks the status for responses of a component. The texts are from a running kube-apiserver 1.36.3.
func TestFind(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			_, _ = w.Write([]byte("ok"))
		case "/agent":
			_, _ = w.Write([]byte(r.UserAgent()))
		case "/long":
			_, _ = w.Write([]byte(strings.Repeat("x", 20<<10)))
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/nowhere":
			w.WriteHeader(http.StatusNotModified)
		case "/cut":
			w.Header().Set("Content-Length", "5")
			_, _ = w.Write([]byte("ok"))
		default:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("a secret"))
		}
	}))
	t.Cleanup(server.Close)
	closed := "https://" + freeport.Address(t) + "/healthz"
	for _, c := range []struct{ at, want string }{
		{server.URL + "/ok", `"message":"ok","status":"True"`},
		{server.URL + "/agent", `"message":"kube-probe/1.37","status":"True"`},
		{server.URL + "/long", `"message":"` + strings.Repeat("x", 10<<10) + `","status":"True"`},
		{server.URL + "/moved", `"message":"ok","status":"True"`},
		{server.URL + "/nowhere", `"message":"Probe terminated redirects, Response body: ","status":"Unknown"`},
		{server.URL + "/cut", `"error":"unexpected EOF","status":"Unknown"`},
		{server.URL + "/broken", `"message":"HTTP probe failed with statuscode: 500","status":"False"`},
		{closed, `"message":"Get \"` + closed + `\": dial tcp ` +
			strings.TrimSuffix(strings.TrimPrefix(closed, "https://"), "/healthz") +
			`: connect: connection refused","status":"False"`},
		{":", `"error":"failed to construct probe request: parse \":\": missing protocol scheme","status":"Unknown"`},
	} {
		find := Find(Config{Scheduler: c.at})
		found, err := find(t.Context(), "", "scheduler")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(codec.AppendJSON(nil, found[0])), `{"conditions":[{`+c.want+
			`,"type":"Healthy"}],"metadata":{"name":"scheduler"}}`; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.at, got, want)
		}
	}
}

// TestHostileComponent checks the status of hostile components.
func TestHostileComponent(t *testing.T) {
	t.Parallel()
	for _, h := range hostile.Servers(t) {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(h)
			t.Cleanup(server.Close)
			found, err := Find(Config{Scheduler: server.URL})(t.Context(), "", "scheduler")
			if err != nil {
				t.Fatal(err)
			}
			condition := found[0]["conditions"].([]any)[0].(object.Object)
			h.CheckText(t, fmt.Sprint(condition["message"], condition["error"]))
		})
	}
}

func TestFindAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("context deadline exceeded")
	find := Find(Config{ControllerManager: ":", Scheduler: ":", Store: func(context.Context) error { return broken }})
	found, err := find(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	const bad = `{"conditions":[{"error":"failed to construct probe request: parse \":\": missing protocol scheme","status":"Unknown","type":"Healthy"}],"metadata":{"name":"`
	want := []string{
		bad + `controller-manager"}}`,
		`{"conditions":[{"error":"error getting data from etcd: context deadline exceeded","status":"False","type":"Healthy"}],"metadata":{"name":"etcd-0"}}`,
		bad + `scheduler"}}`,
	}
	for i, obj := range found {
		if got := string(codec.AppendJSON(nil, obj)); got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	broken = nil
	found, err = find(t.Context(), "", "etcd-0")
	if got, want := string(codec.AppendJSON(nil, found[0])),
		`{"conditions":[{"message":"ok","status":"True","type":"Healthy"}],"metadata":{"name":"etcd-0"}}`; err != nil ||
		got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if _, err := find(t.Context(), "", "etcd-1"); !apierrors.IsNotFound(err) ||
		err.Error() != `componentstatus "etcd-1" not found` {
		t.Error(err)
	}
}
