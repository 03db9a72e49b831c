package hook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStorm lets many clients write while webhooks misbehave in every way. With failurePolicy Fail each gets the reason, with
// Ignore each write succeeds; kinds that no webhook is about do not notice, and no goroutine is left.
func TestStorm(t *testing.T) {
	const clients = 8
	c := start(t)
	c.must("POST", configMaps, configMap("warm", nil))

	released := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-released:
			}
			panic(http.ErrAbortHandler) // an empty answer would race with the end of the caller's patience
		case "/garbage":
			fmt.Fprint(w, "not json")
		case "/empty":
		case "/html":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>bad gateway</html>")
		case "/hang":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"apiVersion":`)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-released:
			}
		case "/huge":
			chunk := strings.Repeat(" ", 1<<20)
			for range 100 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		case "/uid":
			fmt.Fprint(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"x","allowed":true}}`)
		case "/kind":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod"}`)
		}
	}))
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	dead := httptest.NewTLSServer(nil)
	dead.Close()

	good := &listener{Server: server}
	for _, test := range []struct{ name, url, want string }{
		{"slow", server.URL + "/slow", `failed to call webhook: Post "%s/slow?timeout=1s": context deadline exceeded`},
		{"dead", dead.URL + "/dead", `failed to call webhook: Post "%s/dead?timeout=1s": dial tcp %s: connect: connection refused`},
		{"garbage", server.URL + "/garbage", `failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct {`},
		{"empty", server.URL + "/empty", `failed to call webhook: 0-length response with status code: 200 and content type: `},
		{"html", server.URL + "/html", `failed to call webhook: an error on the server ("<html>bad gateway</html>") has prevented the request from succeeding`},
		{"hang", server.URL + "/hang", `failed to call webhook: unexpected error when reading response body. Please retry. Original error: context deadline exceeded`},
		{"huge", server.URL + "/huge", `failed to call webhook: unexpected error when reading response body. Please retry. Original error: the answer is longer than the`},
		{"uid", server.URL + "/uid", `received invalid webhook response: expected response.uid="`},
		{"kind", server.URL + "/kind", `failed to call webhook: no kind "Pod" is registered for version "v1" in scheme`},
		{"certificate", server.URL + "/uid", `failed to call webhook: Post "%s/uid?timeout=1s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
	} {
		base := test.url[:strings.LastIndexByte(test.url, '/')]
		test.want = strings.Replace(strings.Replace(test.want, "%s", base, 1), "%s", strings.TrimPrefix(base, "https://"), 1)
		for _, kind := range []string{validating, mutating} {
			for _, policy := range []string{"Fail", "Ignore"} {
				t.Run(test.name+"/"+kind[:4]+"/"+policy, func(t *testing.T) {
					c := &client{t: t, http: c.http, url: c.url}
					c.register(kind, "storm", good.webhook("w", "/", func(w object) {
						w["failurePolicy"], w["timeoutSeconds"] = policy, 1
						if test.name == "huge" {
							w["timeoutSeconds"] = 30
						}
						w["clientConfig"] = object{"url": test.url, "caBundle": good.authority()}
						if test.name == "certificate" {
							w["clientConfig"] = object{"url": test.url}
						}
					}))
					before := runtime.NumGoroutine()
					var wg sync.WaitGroup
					for i := range clients {
						wg.Go(func() {
							code, status, _ := c.do("POST", configMaps+"?dryRun=All", configMap(fmt.Sprintf("x%d", i), nil))
							message, _ := status["message"].(string)
							switch {
							case policy == "Ignore":
								if code != 201 {
									t.Errorf("%d %s", code, message)
								}
							case code != 500 || !strings.HasPrefix(message, `Internal error occurred: failed calling webhook "w.example.com": `+test.want):
								t.Errorf("%d %s\nwant %s", code, message, test.want)
							}
							if code, status, _ := c.do("POST", "/api/v1/namespaces/default/secrets?dryRun=All", object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}}); code != 201 {
								t.Errorf("a secret: %d %v", code, status["message"])
							}
						})
					}
					wg.Wait()
					c.must("DELETE", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(kind)+"s/storm", nil)
					settle(t, before+4*clients) // connections that are kept, of both sides, have two goroutines each
				})
			}
		}
	}
	c.http.CloseIdleConnections()
}

// settle waits until no more than limit goroutines run.
func settle(t *testing.T, limit int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > limit {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, more than %d", runtime.NumGoroutine(), limit)
		}
		runtime.Gosched()
	}
}
