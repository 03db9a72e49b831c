package proxy

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// guarded returns the handler of a proxy with these flags, and the number of requests that have reached the API server.
// That server answers with the host and path of each request.
func guarded(t *testing.T, args ...string) (http.Handler, *atomic.Int64) {
	t.Helper()
	reached := new(atomic.Int64)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
			w.WriteHeader(http.StatusSwitchingProtocols)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, r.Method+" "+r.URL.Path)
	}))
	t.Cleanup(api.Close)
	o := &flags{}
	set := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	o.bind(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.complete(slog.NewLogLogger(slog.DiscardHandler, 0).Writer()); err != nil {
		t.Fatal(err)
	}
	h, err := o.handler(&rest.Config{Host: api.URL}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return h, reached
}

// send has the handler answer a request. Headers are "Name: value".
func send(h http.Handler, method, host, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	r.Header.Del("Content-Type")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestPagesOfOtherOrigins checks all combinations of headers that name the page of a request. A request reaches the API
// server if no header names another page.
func TestPagesOfOtherOrigins(t *testing.T) {
	h, reached := guarded(t)
	type request struct {
		header  string
		foreign bool
	}
	hosts := []request{
		{"localhost:8001", false}, {"127.0.0.1:8001", false}, {"[::1]:8001", false}, {"localhost", false},
		{"evil.example:8001", true}, {"localhost.evil.example", true}, {"127.0.0.1.evil.example:8001", true},
		{"proxied-0123456789abcdef0123456789abcdef.localhost:8001", true}, {"10.0.0.1:8001", true},
	}
	// HOST stands for the host that the request is for.
	origins := []request{
		{"", false}, {"http://HOST", false}, {"https://HOST", false},
		{"null", true}, {"http://evil.example", true}, {"http://localhost:3000", true},
		{"http://HOST.evil.example", true},
		{"http://HOST@evil.example", true}, {"https://localhost:8443", true}, {"file://", true}, {"HOST", true},
		{"chrome-extension://abcdef", true}, {"ftp://HOST", true}, {"http://HOST, http://evil.example", true},
		{"http://%zz", true},
	}
	sites := []request{
		{"", false}, {"same-origin", false}, {"none", false},
		{"same-site", true}, {"cross-site", true}, {"Same-Origin", true}, {"anything", true},
	}
	referers := []request{
		{"", false}, {"http://HOST/static/", false},
		{"http://evil.example/a", true}, {"http://localhost:3000/", true}, {"about:client", true},
	}
	requests := [][]string{
		{"GET", "/api/v1/secrets"},
		{"GET", "/api/v1/secrets?watch=1", "Connection: Upgrade", "Upgrade: websocket", "Sec-Fetch-Mode: websocket"},
		{"GET", "/api/v1/secrets", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"},
		{"GET", "/api/v1/secrets", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
		{"GET", "/api/v1/secrets?watch=1", "Accept: text/event-stream", "Sec-Fetch-Mode: cors"},
		{"GET", "/api/v1/namespaces/a/services/b/proxy/reset", "Sec-Fetch-Dest: image"},
		{"HEAD", "/api"},
		{"POST", "/api/v1/namespaces"},
		{"POST", "/api/v1/namespaces", "Content-Type: text/plain"},
		{"POST", "/api/v1/namespaces", "Content-Type: application/x-www-form-urlencoded"},
		{"POST", "/api/v1/namespaces", "Content-Type: application/json"},
		{"OPTIONS", "/api/v1/namespaces", "Access-Control-Request-Method: DELETE"},
		{"OPTIONS", "/api/v1/namespaces", "Access-Control-Request-Private-Network: true"},
		{"DELETE", "/api/v1/namespaces/a"}, {"PATCH", "/api/v1/namespaces/a"}, {"PUT", "/api/v1/namespaces/a"},
	}
	for _, host := range hosts {
		for _, origin := range origins {
			for _, site := range sites {
				for _, referer := range referers {
					var headers []string
					for name, value := range map[string]string{
						"Origin": origin.header, "Sec-Fetch-Site": site.header, "Referer": referer.header,
					} {
						if value != "" {
							headers = append(headers, name+": "+strings.ReplaceAll(value, "HOST", host.header))
						}
					}
					foreign := host.foreign || origin.foreign || site.foreign
					if origin.header == "" && site.header == "" { // as older browsers send for images and links
						foreign = foreign || referer.foreign
					}
					for _, request := range requests {
						before := reached.Load()
						resp := send(h, request[0], host.header, request[1], append(headers, request[2:]...)...)
						refused := resp.StatusCode == http.StatusForbidden
						if through := reached.Load() > before; refused != foreign || through == foreign {
							t.Fatalf("%q to %s with %q: %s; it reached the API server: %v",
								request, host.header, headers, resp.Status, through)
						}
						if !foreign && resp.Header.Get("Content-Security-Policy") != "sandbox" {
							t.Fatalf("%q: scripts in the answer may run", request)
						}
					}
				}
			}
		}
	}
}

// TestRepeatedHeaders checks requests with two headers of one name. A page or a proxy has added the second.
func TestRepeatedHeaders(t *testing.T) {
	h, _ := guarded(t, "--accept-origins=^http://own$")
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{[]string{"Origin: http://localhost", "Origin: http://localhost"}, 200},
		{[]string{"Origin: http://localhost", "Origin: http://evil"}, 403},
		{[]string{"Origin: http://own", "Origin: http://evil"}, 403},
		{[]string{"Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"}, 403},
		{[]string{"Sec-Fetch-Site: "}, 403},
		{[]string{"Origin: "}, 403},
	} {
		if resp := send(h, "GET", "localhost", "/api", c.headers...); resp.StatusCode != c.want {
			t.Errorf("%q: %d, not %d", c.headers, resp.StatusCode, c.want)
		}
	}
}

// TestPagesThatAreLetIn checks that --accept-origins admits pages of other origins, and --disable-filter all pages.
func TestPagesThatAreLetIn(t *testing.T) {
	for _, c := range []struct {
		args, headers string
		want          int
	}{
		{"--accept-origins=^http://localhost:5173$", "Origin: http://localhost:5173|Sec-Fetch-Site: same-site", 200},
		{"--accept-origins=^http://localhost:5173$", "Origin: http://localhost:51730|Sec-Fetch-Site: same-site", 403},
		{"--accept-origins=^http://localhost:5173$", "Referer: http://localhost:5173/a", 200},
		{"--accept-origins=^http://localhost:5173$", "Sec-Fetch-Site: same-site", 403}, // of an unknown page
		{"--accept-origins=a,^http://b$", "Origin: http://b", 200},
		{"--disable-filter", "Origin: http://evil|Sec-Fetch-Site: cross-site", 200},
	} {
		h, _ := guarded(t, c.args)
		resp := send(h, "POST", "localhost:8001", "/api", strings.Split(c.headers, "|")...)
		if resp.StatusCode != c.want {
			t.Errorf("%s, %s: %d, not %d", c.args, c.headers, resp.StatusCode, c.want)
		}
	}
}

// TestPagesOfPods checks that a page of a pod is shown at a host of its own with no other content, and that scripts of
// other responses do not run. Files of --www are the user's own pages.
func TestPagesOfPods(t *testing.T) {
	www := t.TempDir()
	if err := os.WriteFile(filepath.Join(www, "page.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(site string) []string { return []string{"Sec-Fetch-Site: " + site, "Sec-Fetch-Mode: navigate"} }
	for _, prefix := range []string{"/", "/k8s/", "/api/"} {
		h, reached := guarded(t, "--api-prefix="+prefix, "--www="+www)
		at := strings.TrimSuffix(prefix, "/")
		if prefix == "/api/" {
			at = ""
		}
		file := send(h, "GET", "localhost:8001", "/static/page.html")
		if csp := file.Header.Get("Content-Security-Policy"); csp != "" {
			t.Errorf("a file has the policy %s", csp)
		}
		names := map[string]string{}
		for _, path := range []string{
			"/api/v1/namespaces/a/pods/b/proxy", "/api/v1/namespaces/a/pods/b/proxy/x?y=%2f", "/api/v1/nodes/n/proxy/",
			"/api/v1/namespaces/a/pods/c/proxy/", "/api/v1/namespaces/a/services/https:b:web/proxy/",
		} {
			path = at + path
			resp := send(h, "GET", "127.0.0.1:8001", path, open("none")...)
			to, err := url.Parse(resp.Header.Get("Location"))
			if err != nil || resp.StatusCode != 307 || to.RequestURI() != path || to.Port() != "8001" {
				t.Fatalf("%s: %s to %q, %v", path, resp.Status, to, err)
			}
			pod, _, _ := strings.Cut(path, "/proxy")
			if other, ok := names[to.Host]; ok && other != pod {
				t.Errorf("%s and %s have the same host", pod, other)
			}
			names[to.Host] = pod
			own := []string{"Origin: http://" + to.Host, "Sec-Fetch-Site: same-origin"}
			for _, c := range []struct {
				method, path string
				headers      []string
				want         int
			}{
				{"GET", path, open("cross-site"), 200}, // from the redirect of a link
				{"GET", path, []string{"Sec-Fetch-Site: same-origin"}, 200},
				{"POST", path, own, 200},
				{"POST", path, open("cross-site")[:1], 403},
				{"POST", path, append(open("cross-site"), "Origin: http://evil.example"), 403},
				{"GET", path, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
				{"GET", at + "/api/v1/secrets", own, 403},
				{"GET", at + "/api/v1/namespaces/a/pods/other/proxy/", own, 403},
				{"GET", at + "/api/v1/namespaces/a/pods/b/log", own, 403},
				{"GET", "/static/page.html", own, 403},
			} {
				before := reached.Load()
				resp := send(h, c.method, to.Host, c.path, c.headers...)
				if resp.StatusCode != c.want || (reached.Load() > before) != (c.want == 200) {
					t.Errorf("%s at %s with %q: %d, not %d", c.path, to.Host, c.headers, resp.StatusCode, c.want)
				}
				if csp := resp.Header.Get("Content-Security-Policy"); csp != "" {
					t.Errorf("the pod's page has the policy %s", csp)
				}
			}
			// The pod's page has no way to the API.
			for _, headers := range [][]string{
				{"Origin: http://" + to.Host}, open("cross-site"), {"Sec-Fetch-Site: same-site"},
			} {
				if resp := send(h, "GET", "localhost:8001", at+"/api/v1/secrets", headers...); resp.StatusCode != 403 {
					t.Errorf("a page of the pod gets Secrets: %s", resp.Status)
				}
			}
			// Encoded dots lead nowhere else either.
			resp = send(h, "GET", to.Host, pod+"/proxy/%2e%2e/%2e%2e/c/proxy/", own...)
			if resp.StatusCode != 403 {
				t.Errorf("dots: %s", resp.Status)
			}
		}
		const earlier = "proxied-0123456789abcdef0123456789abcdef.localhost:8001"
		resp := send(h, "GET", earlier, at+"/api/v1/nodes/n/proxy/", open("none")...)
		if to := resp.Header.Get("Location"); to != "http://localhost:8001"+at+"/api/v1/nodes/n/proxy/" {
			t.Errorf("a bookmark of an earlier run leads to %q", to)
		}
		// A program gets the page at this address; a browser's scripts would not run.
		resp = send(h, "GET", "localhost:8001", at+"/api/v1/nodes/n/proxy/")
		if resp.StatusCode != 200 || resp.Header.Get("Content-Security-Policy") != "sandbox" {
			t.Errorf("a program gets %s", resp.Status)
		}
	}
}

// TestWebSockets checks that programs, the proxy's own pages and a pod's page to its pod may open a WebSocket, and no
// other page.
func TestWebSockets(t *testing.T) {
	h, _ := guarded(t)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	const path = "/api/v1/namespaces/a/pods/b/proxy/"
	to, err := send(h, "GET", "localhost:"+port, path, "Sec-Fetch-Mode: navigate").Location()
	if err != nil {
		t.Fatal(err)
	}
	own := "localhost:" + port
	for _, c := range []struct {
		host, path, origin string
		want               int
	}{
		{own, "/api/v1/secrets?watch=1", "", 101},
		{own, "/api/v1/secrets?watch=1", "http://" + own, 101},
		{own, "/api/v1/secrets?watch=1", "http://evil.example", 403},
		{own, "/api/v1/secrets?watch=1", "null", 403},
		{own, "/api/v1/secrets?watch=1", "http://localhost:1", 403},
		{own, "/api/v1/secrets?watch=1", "http://" + to.Host, 403},
		{to.Host, path, "http://" + to.Host, 101},
		{to.Host, path, "http://" + own, 403},
		{to.Host, "/api/v1/secrets?watch=1", "http://" + to.Host, 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s%s from %q: %s, not %d", c.host, c.path, c.origin, resp.Status, c.want)
		}
	}
}
