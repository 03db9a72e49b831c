package front

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// TestRoutes finds the handlers of paths, of very long ones too, without looking up each prefix of them.
func TestRoutes(t *testing.T) {
	var found string
	named := func(name string) Handler {
		return func(http.ResponseWriter, *http.Request, *request.Info, user.Info) { found = name }
	}
	long := "/" + strings.Repeat("a", 2*shortPath)
	r := routes{}
	for _, path := range []string{"/api/", "/metrics", "/metrics/slis", "/openapi/", long + "/"} {
		r[path] = named(path)
	}
	const segments = 20_000
	for path, want := range map[string]string{
		"/api": "/api/", "/api/": "/api/", "/api/v1": "/api/", "/apis": "", "/": "", "": "",
		"/metrics": "/metrics", "/metrics/slis": "/metrics/slis", "/metrics/x": "",
		long: long + "/", long + "/": long + "/", long + "/b": long + "/", long + "b": "", long[:len(long)-1]: "",
		"/api" + strings.Repeat("/", segments):     "/api/",
		"/api" + strings.Repeat("/a", segments):    "/api/",
		"/metrics" + strings.Repeat("/", segments): "",
		long + strings.Repeat("/", segments):       long + "/",
		long + "b" + strings.Repeat("/", segments): "",
	} {
		found = ""
		if h := r.find(path); h != nil {
			h(nil, nil, nil, nil)
		}
		if found != want {
			t.Errorf("%.30s of %d bytes: got the handler of %.30q, want %.30q", path, len(path), found, want)
		}
		if n := testing.AllocsPerRun(1, func() { r.find(path) }); n > 3*shortPath {
			t.Errorf("%.30s of %d bytes: %v allocations", path, len(path), n)
		}
	}
}
