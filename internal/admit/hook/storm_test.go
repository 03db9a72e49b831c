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

	"github.com/bowsprit/bowsprit/internal/testing/leak"
)

// clients is the number of concurrent writes that match a webhook.
const clients = 200

// TestStorm runs many concurrent writes while webhooks misbehave in every way. With failurePolicy Fail each gets the
// reason, with Ignore each write succeeds; other kinds are not affected, and no goroutine and no memory is left.
func TestStorm(t *testing.T) {
	c := start(t)
	c.must("POST", configMaps, configMap("warm", nil))
	goroutines, heap := runtime.NumGoroutine(), leak.HeapInUse()

	released := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-released:
			}
			panic(http.ErrAbortHandler) // an empty response would race with the caller's timeout
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
			fmt.Fprint(w,
				`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"x","allowed":true}}`)
		case "/kind":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod"}`)
		}
	}))
	server.Config.ErrorLog = nil
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	dead := httptest.NewTLSServer(nil)
	dead.Close()

	good := &listener{Server: server}
	for _, test := range []struct{ name, url, want string }{
		{"slow", server.URL + "/slow", `failed to call webhook: Post "%s/slow?timeout=1s": context deadline exceeded`},
		{"dead", dead.URL + "/dead",
			`failed to call webhook: Post "%s/dead?timeout=30s": dial tcp %s: connect: connection refused`},
		{"garbage", server.URL + "/garbage",
			`failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct {`},
		{"empty", server.URL + "/empty",
			`failed to call webhook: 0-length response with status code: 200 and content type: `},
		{"html", server.URL + "/html",
			`failed to call webhook: an error on the server ("<html>bad gateway</html>") has prevented the request from succeeding`},
		{"hang", server.URL + "/hang",
			`failed to call webhook: unexpected error when reading response body. Please retry. Original error: context deadline exceeded`},
		{"huge", server.URL + "/huge",
			`failed to call webhook: unexpected error when reading response body. Please retry. Original error: the answer exceeds the limit of`},
		{"uid", server.URL + "/uid", `received invalid webhook response: expected response.uid="`},
		{"kind", server.URL + "/kind",
			`failed to call webhook: no kind "Pod" is registered for version "v1" in scheme`},
		{"certificate", server.URL + "/uid",
			`failed to call webhook: Post "%s/uid?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
	} {
		base := test.url[:strings.LastIndexByte(test.url, '/')]
		test.want = strings.Replace(strings.Replace(test.want, "%s", base, 1), "%s",
			strings.TrimPrefix(base, "https://"), 1)
		for _, kind := range []string{validating, mutating} {
			for _, policy := range []string{"Fail", "Ignore"} {
				t.Run(test.name+"/"+kind[:4]+"/"+policy, func(t *testing.T) {
					c := &client{t: t, http: c.http, url: c.url}
					c.register(kind, "storm", good.webhook("w", "/", func(w object) {
						w["failurePolicy"], w["timeoutSeconds"] = policy, 30
						if test.name == "slow" || test.name == "hang" {
							w["timeoutSeconds"] = 1
						}
						w["clientConfig"] = object{"url": test.url, "caBundle": good.authority()}
						if test.name == "certificate" {
							w["clientConfig"] = object{"url": test.url}
						}
					}))
					clients := clients
					switch test.name { // a busy machine takes seconds for these
					case "huge":
						clients = 5 // each reads 5 MiB
					case "certificate":
						clients = 40 // each has its own handshake
					}
					var wg sync.WaitGroup
					for i := range clients {
						wg.Go(func() {
							code, status, _ := c.do("POST", configMaps+"?dryRun=All",
								configMap(fmt.Sprintf("x%d", i), nil))
							message, _ := status["message"].(string)
							switch {
							case policy == "Ignore":
								if code != 201 {
									t.Errorf("%d %s", code, message)
								}
							case test.name == "hang" && strings.HasSuffix(message, "context deadline exceeded"):
								// on a busy machine, before the response begins
							case code != 500 ||
								!strings.HasPrefix(message,
									`Internal error occurred: failed calling webhook "w.example.com": `+test.want):
								t.Errorf("%d %s\nwant %s", code, message, test.want)
							}
						})
					}
					for range 20 {
						wg.Go(func() {
							if code, status, _ := c.do("POST", "/api/v1/namespaces/default/secrets?dryRun=All",
								object{
									"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"},
								}); code != 201 {
								t.Errorf("a secret: %d %v", code, status["message"])
							}
						})
					}
					wg.Wait()
					c.must("DELETE", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(kind)+"s/storm", nil)
				})
			}
		}
	}
	server.CloseClientConnections()
	c.http.CloseIdleConnections()
	leak.Settle(t, "goroutines", func() (int64, int64) { return int64(runtime.NumGoroutine()), int64(goroutines + 30) })
	leak.Settle(t, "bytes of heap", func() (int64, int64) { return leak.HeapInUse(), heap + 64<<20 })
}

// TestOthersGoOn checks that writes waiting for a webhook delay no other write, however many they are: meanwhile other
// clients read and write; then the webhook responds, and the waiting writes complete.
func TestOthersGoOn(t *testing.T) {
	for _, kind := range []string{validating, mutating} {
		t.Run(kind, func(t *testing.T) {
			const clients = 60 // each has its own handshake, limited to ten seconds on a busy machine
			requested, answer := make(chan struct{}, clients), make(chan struct{})
			release := sync.OnceFunc(func() { close(answer) })
			l := listen(t, func(string, object) object {
				requested <- struct{}{}
				<-answer
				return object{"allowed": true}
			})
			t.Cleanup(release)
			c := start(t)
			c.must("POST", configMaps, configMap("there", nil))
			c.register(kind, "slow", l.webhook("w", "/", func(w object) { w["timeoutSeconds"] = 30 }))
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					if code, status, _ := c.do("POST", configMaps,
						configMap(fmt.Sprintf("x%d", i), nil)); code != 201 &&
						!strings.Contains(fmt.Sprint(status["message"]), "context deadline exceeded") &&
						!strings.Contains(fmt.Sprint(status["message"]), "TLS handshake timeout") {
						t.Errorf("%d %v", code, status["message"])
					}
				})
			}
			// More than half of them: on a busy machine the first calls may have timed out before the last one.
			for range clients / 2 {
				<-requested
			}
			c.must("POST", "/api/v1/namespaces/default/secrets",
				object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}})
			c.must("GET", configMaps+"/there", nil)
			c.must("GET", "/api/v1/configmaps", nil)
			c.must("DELETE", "/api/v1/namespaces/default/secrets/s", nil)
			c.must("GET", "/apis", nil)
			release()
			wg.Wait()
		})
	}
}

// BenchmarkOthers measures a write that matches no webhook, alone and while 200 writes wait for one.
func BenchmarkOthers(b *testing.B) {
	for _, waiting := range []int{0, clients} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			requested, answer := make(chan struct{}), make(chan struct{})
			l := listen(b, func(string, object) object {
				requested <- struct{}{}
				<-answer
				return object{"allowed": true}
			})
			c := start(b)
			c.register(validating, "slow", l.webhook("w", "/", func(w object) { w["timeoutSeconds"] = 30 }))
			var wg sync.WaitGroup
			for i := range waiting {
				wg.Go(func() { c.do("POST", configMaps+"?dryRun=All", configMap(fmt.Sprintf("x%d", i), nil)) })
			}
			for range waiting {
				<-requested
			}
			for b.Loop() {
				c.must("POST", "/api/v1/namespaces/default/secrets?dryRun=All",
					object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}})
				c.must("GET", "/api/v1/namespaces/default", nil)
			}
			close(answer)
			wg.Wait()
		})
	}
}
