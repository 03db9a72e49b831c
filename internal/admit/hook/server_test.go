package hook_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

type object = map[string]any

// client sends JSON requests to a server.
type client struct {
	t    testing.TB
	http *http.Client
	url  string
}

func start(t testing.TB) *client {
	t.Helper()
	s := testserver.Start(t)
	h, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return &client{t: t, http: h, url: s.URL()}
}

// do sends body (an object, or raw text) and returns the code, the response and its warnings.
func (c *client) do(method, path string, body any) (int, object, []string) {
	c.t.Helper()
	var raw []byte
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		raw, _ = json.Marshal(b)
	}
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
		if strings.Contains(path, "fieldManager=applier") {
			contentType = "application/apply-patch+yaml"
		}
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var obj object
	if err := json.Unmarshal(answer, &obj); err != nil {
		c.t.Fatalf("%s %s: %s", method, path, answer)
	}
	return resp.StatusCode, obj, resp.Header.Values("Warning")
}

// must is do for requests that have to succeed.
func (c *client) must(method, path string, body any) object {
	c.t.Helper()
	code, obj, _ := c.do(method, path, body)
	if code >= 300 {
		c.t.Fatalf("%s %s: %d %v", method, path, code, obj["message"])
	}
	return obj
}

// listener is a webhook. answer receives the decoded request and returns the response, without its uid.
type listener struct {
	*httptest.Server
	mu   sync.Mutex
	seen []object // requests in order of arrival
}

func listen(t testing.TB, answer func(path string, request object) object) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review object
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("review: %v", err)
			return
		}
		request := review["request"].(object)
		if request["name"] != "kube-root-ca.crt" { // a controller writes it at some time
			l.mu.Lock()
			l.seen = append(l.seen, object{"path": r.URL.Path, "version": review["apiVersion"], "request": request})
			l.mu.Unlock()
		}
		response := maps.Clone(answer(r.URL.Path, request)) // several calls may receive the same map at once
		response["uid"] = request["uid"]
		_ = json.NewEncoder(w).Encode(object{
			"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
		})
	}))
	t.Cleanup(l.Close)
	return l
}

// requests returns the webhook's requests so far, and clears them.
func (l *listener) requests() []object {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.seen
	l.seen = nil
	return out
}

func (l *listener) paths() (out []string) {
	for _, r := range l.requests() {
		out = append(out, r["path"].(string))
	}
	return out
}

func (l *listener) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
}

// webhook returns a webhook for config maps; change completes it.
func (l *listener) webhook(name, path string, change func(object)) object {
	w := object{
		"name": name + ".example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		"clientConfig": object{"url": l.URL + path, "caBundle": l.authority()},
		"rules": []any{object{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"},
			"resources": []any{"configmaps"},
		}},
	}
	if change != nil {
		change(w)
	}
	return w
}

func (c *client) register(kind, name string, hooks ...object) {
	c.t.Helper()
	c.must("POST", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(kind)+"s", object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": object{"name": name},
		"webhooks": hooks,
	})
}

const (
	mutating   = "MutatingWebhookConfiguration"
	validating = "ValidatingWebhookConfiguration"
	configMaps = "/api/v1/namespaces/default/configmaps"
)

func configMap(name string, data object) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": data}
}

// patch is a response that changes the object.
func patch(format string, args ...any) object {
	return object{"allowed": true, "patchType": "JSONPatch", "patch": []byte(fmt.Sprintf(format, args...))}
}
