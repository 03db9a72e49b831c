package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

const warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"

// TestPages requests each form. Bodies and codes match kube-apiserver 1.36.3, except for the separators between
// names and values.
func TestPages(t *testing.T) {
	began := time.Date(2026, 11, 22, 2, 54, 42, 0, time.UTC)
	status := Status{
		Started: began, Now: func() time.Time { return began.Add(26*time.Hour + 3*time.Minute + 4*time.Second) },
		Binary: "1.36.3", Emulation: "1.36", Go: "go1.26", Paths: []string{"/healthz", "/statusz"},
	}
	flags := Flags{"v": "2", "data-dir": "/d"}
	const (
		refused = `"message":"only the following media types are accepted: application/json, application/yaml, text/plain","reason":"NotAcceptable","code":406`
		statusz = "\napiserver statusz\n" + warning +
			"\nStarted: Sun Nov 22 02:54:42 UTC 2026\nUp: 26 hr 03 min 04 sec\nGo version: go1.26\nBinary version: 1.36.3\nEmulation version: 1.36\nPaths: /healthz /statusz\n"
		flagz    = "\napiserver flagz\n" + warning + "data-dir=/d\nv=2\n"
		statuszV = `{"kind":"Statusz","apiVersion":"config.k8s.io/VERSION","metadata":{"name":"apiserver"},"startTime":"2026-11-22T02:54:42Z","uptimeSeconds":93784,` +
			`"goVersion":"go1.26","binaryVersion":"1.36.3","emulationVersion":"1.36","paths":["/healthz","/statusz"]}`
		old = "This version of the statusz endpoint is deprecated. Please use a newer version."
	)
	for _, test := range []struct {
		accept, contentType, body, warned string
		serve                             http.HandlerFunc
	}{
		{"", "text/plain; charset=utf-8", statusz, "", status.Serve},
		{"*/*", "text/plain; charset=utf-8", statusz, "", status.Serve},
		{"text/plain", "text/plain; charset=utf-8", flagz, "", flags.Serve},
		{"application/json;v=foo;g=config.k8s.io;as=Flagz,*/*", "text/plain; charset=utf-8", flagz, "", flags.Serve},
		{"application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
			"application/json;g=config.k8s.io;v=v1beta1;as=Statusz", strings.Replace(statuszV, "VERSION", "v1beta1", 1),
			"", status.Serve},
		{"application/json;v=v1alpha1;g=config.k8s.io;as=Statusz,application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
			"application/json;g=config.k8s.io;v=v1alpha1;as=Statusz",
			strings.Replace(statuszV, "VERSION", "v1alpha1", 1), old, status.Serve},
		{"application/json;v=v1beta1;g=config.k8s.io;as=Statusz,application/json;v=v1alpha1;g=config.k8s.io;as=Statusz",
			"application/json;g=config.k8s.io;v=v1beta1;as=Statusz", strings.Replace(statuszV, "VERSION", "v1beta1", 1),
			"", status.Serve},
		{"application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz", "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz",
			"apiVersion: config.k8s.io/v1beta1\nflags:\n  data-dir: /d\n  v: \"2\"\nkind: Flagz\nmetadata:\n  name: apiserver\n", "", flags.Serve},
		{"application/json", "application/json", refused, "", status.Serve},
		{"application/json;v=v1beta1;g=config.k8s.io", "application/json", refused, "", flags.Serve},
		{"application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "application/json", refused, "", flags.Serve},
		{"text/plain;v=v1beta1;g=config.k8s.io;as=Flagz", "application/json", refused, "", flags.Serve},
		{"application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz", "application/json", refused, "", flags.Serve},
	} {
		t.Run(test.accept, func(t *testing.T) {
			scope := &request.Scope{}
			r := httptest.NewRequestWithContext(request.NewContext(t.Context(), scope), http.MethodGet, "/", nil)
			if test.accept != "" {
				r.Header.Set("Accept", test.accept)
			}
			w := httptest.NewRecorder()
			test.serve(w, r)
			body := strings.TrimSuffix(w.Body.String(), "\n")
			if test.body == refused {
				body = strings.NewReplacer("\n", "", "  ", "", `": `, `":`).Replace(body)
				if w.Code != http.StatusNotAcceptable || !strings.Contains(body, refused) {
					t.Errorf("%d %s", w.Code, body)
				}
				return
			}
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != test.contentType ||
				body != strings.TrimSuffix(test.body, "\n") {
				t.Errorf("%d %s\n%s\nwant %s\n%s", w.Code, w.Header().Get("Content-Type"), body, test.contentType,
					test.body)
			}
			if got := strings.Join(scope.Warnings(), "; "); !strings.Contains(got, test.warned) || test.warned == "" &&
				got != "" {
				t.Errorf("warnings %q", got)
			}
		})
	}
}

// TestPagesInCBOR has the feature gate on.
func TestPagesInCBOR(t *testing.T) {
	r := httptest.NewRequestWithContext(codec.WithCBOR(t.Context()), http.MethodGet, "/", nil)
	r.Header.Set("Accept", "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz")
	w := httptest.NewRecorder()
	Flags{"v": "2"}.Serve(w, r)
	var got flagz
	if err := codec.UnmarshalCBOR(w.Body.Bytes(), &got); err != nil || got.Kind != "Flagz" || got.Flags["v"] != "2" ||
		w.Header().Get("Content-Type") != "application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz" {
		t.Errorf("%v %+v %s", err, got, w.Header().Get("Content-Type"))
	}
}
