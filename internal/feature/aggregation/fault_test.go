package aggregation_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const anyone = "/apis/" + group + "/v1/namespaces/default/flunders"

// TestFaults checks that a misbehaving server fails only its own requests, with a Status that has the reason.
func TestFaults(t *testing.T) {
	c := start(t)
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("fault") {
		case "redirect":
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		case "break":
			panic(http.ErrAbortHandler)
		case "short":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "mid":
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "fine")
		}
	})
	c.service()
	c.register(b, "")
	c.available()
	if code, body := c.do("GET", anyone+"?fault=redirect", ""); code != 502 ||
		!strings.Contains(body, "the backend attempted to redirect this request, which is not permitted") {
		t.Errorf("redirect: %d %s", code, body)
	}
	if code, body := c.do("GET", anyone+"?fault=break", ""); code != 503 ||
		!strings.Contains(body, `APIService \"v1.`+group+`\" is not available: the request has failed: `) {
		t.Errorf("break: %d %s", code, body)
	}
	for _, path := range []string{anyone, anyone + "/a"} { // over HTTP/1 and HTTP/2
		if code, body := c.do("GET", path+"?fault=short", ""); code != 503 ||
			!strings.Contains(body, "the request has failed: the answer breaks off: ") {
			t.Errorf("a short answer that breaks off: %d %s", code, body)
		}
		if code, _ := c.do("HEAD", path, ""); code != 200 {
			t.Errorf("HEAD: %d", code)
		}
	}
	if code, body := c.do("GET", anyone+"?fault=hang&timeout=100ms", ""); code != 504 {
		t.Errorf("hang: %d %s", code, body)
	}
	resp, err := c.client.Get(c.url + anyone + "?fault=mid")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half of an answer is taken for a whole one: %s", body)
	}
	resp.Body.Close()
	if code, body := c.do("GET", anyone, ""); code != 200 || body != "fine" {
		t.Errorf("afterwards: %d %s", code, body)
	}
	b.set(func(b *backend) { b.resources = strings.Repeat(" ", 5<<20) + flunders })
	c.must("PATCH", "/api/v1/namespaces/default/services/api", `{"metadata":{"labels":{"a":"b"}}}`,
		"Content-Type: application/merge-patch+json")
	if code, body := c.do("GET", anyone, ""); code != 200 || body != "fine" {
		t.Errorf("too long a list of resources: %d %s", code, body)
	}
}

// TestConditions checks the reasons for which a server is unavailable.
func TestConditions(t *testing.T) {
	c := start(t)
	b := serveBackend(t, nil)
	c.register(b, "")
	name := "v1." + group
	port := strconv.Itoa(b.port)
	wait := func(reason, message string) {
		t.Helper()
		c.condition(name, func(_, r, m string) bool { return r == reason && strings.HasPrefix(m, message) })
	}
	wait("ServiceNotFound", `service/api in "default" is not present`)
	const services, slices = "/api/v1/namespaces/default/services",
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	c.must("POST", services, `{"metadata":{"name":"api"},"spec":{"ports":[{"name":"https","port":1}]}}`)
	wait("ServicePortError", `service/api in "default" is not listening on port `+port)
	merge := "Content-Type: application/merge-patch+json"
	c.must("PATCH", services+"/api", `{"spec":{"ports":[{"name":"https","port":`+port+`}]}}`, merge)
	wait("EndpointsNotFound", `cannot find endpointslices for service/api in "default"`)
	c.must("POST", slices, fmt.Sprintf(`{"metadata":{"name":"one","labels":{"kubernetes.io/service-name":"api"}},
		"addressType":"IPv4","ports":[{"name":"https","port":%d}],"endpoints":[{"addresses":["192.0.2.1"],
		"conditions":{"ready":false}}]}`, b.port))
	wait("MissingEndpoints", `endpointslices for service/api in "default" have no addresses with port name "https"`)
	c.must("DELETE", services+"/api", "")
	c.service()
	wait("Passed", "all checks passed")
	other := serveBackend(t, nil) // its certificate has another authority
	c.must("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/"+name,
		fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, other.port), merge)
	wait("FailedDiscoveryCheck", "failing or missing response from https://localhost:"+strconv.Itoa(other.port))
	c.must("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/"+name,
		`{"spec":{"caBundle":null,"insecureSkipTLSVerify":true}}`, merge)
	wait("Passed", "all checks passed")
	c.must("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/"+name,
		`{"spec":{"service":null,"insecureSkipTLSVerify":null}}`, merge)
	wait("Local", "Local APIServices are always available")
}

// TestStreams checks that streams are forwarded without delay, and that connections can be upgraded.
func TestStreams(t *testing.T) {
	c := start(t)
	more := make(chan string)
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_ = http.NewResponseController(w).Flush() // clients see the start of a watch before its first event
			for text := range more {
				_, _ = io.WriteString(w, text+"\n")
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
			r.Header.Get("Upgrade"))
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(r.Header.Get("X-Remote-User") + " said " + line)
		_ = rw.Flush()
	})
	c.service()
	c.register(b, "")
	c.available()
	resp, err := c.client.Get(c.url + anyone + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		more <- strconv.Itoa(i)
		if !lines.Scan() || lines.Text() != strconv.Itoa(i) {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
	}
	close(more)
	resp.Body.Close()

	conn := c.dial()
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s/a/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
		anyone)
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != 101 || answer.Header.Get("Upgrade") != "SPDY/3.1" {
		t.Fatalf("%+v, %v", answer, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "kubernetes-admin said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestWatchList checks a server without initial events: the aggregator lists, and watches from there.
func TestWatchList(t *testing.T) {
	c := start(t)
	requested := make(chan string, 2)
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		requested <- r.URL.RawQuery + " " + r.Header.Get("Accept")
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"FlunderList","apiVersion":"`+group+`/v1","metadata":{"resourceVersion":"7"},
				"items":[{"metadata":{"name":"a"}},{"kind":"Flunder","apiVersion":"x/v1","metadata":{"name":"b"}}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"c"}}}`+"\n")
	})
	c.service()
	c.register(b, "")
	c.available()
	got := c.must("GET", anyone+"?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&"+
		"resourceVersionMatch=NotOlderThan&labelSelector=a%3Db", "",
		"Accept: application/vnd.kubernetes.protobuf,application/json")
	want := `{"type":"ADDED","object":{"kind":"Flunder","apiVersion":"` + group + `/v1","metadata":{"name":"a"}}}
{"type":"ADDED","object":{"kind":"Flunder","apiVersion":"x/v1","metadata":{"name":"b"}}}
{"object":{"apiVersion":"` + group + `/v1","kind":"Flunder","metadata":{"annotations":` +
		`{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,"resourceVersion":"7"}},"type":"BOOKMARK"}
{"type":"ADDED","object":{"metadata":{"name":"c"}}}
`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text := <-requested + "; " + <-requested; text != "labelSelector=a%3Db application/json; "+
		"allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=7&watch=true application/json" {
		t.Errorf("asked %s", text)
	}
}
