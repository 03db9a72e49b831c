package aggregation_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// backend is another server, for the version v1 of a group.
type backend struct {
	*httptest.Server
	ca   []byte // PEM
	port int

	mu        sync.Mutex
	handler   http.HandlerFunc // of all requests except discovery
	resources string           // the response to discovery; "" means 500
	down      bool             // no request gets an answer
	group     string           // the served group, "*" for any
	peers     []*x509.Certificate
}

const group = "wardle.example.com"

const flunders = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wardle.example.com/v1","resources":[
	{"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder",
	"verbs":["create","delete","deletecollection","get","list","watch"],"shortNames":["fl"]},
	{"name":"flunders/status","singularName":"","namespaced":true,"kind":"Flunder","verbs":["get","update"]}]}`

// certificate creates a certificate for names, with its authority.
func certificate(t *testing.T, names ...string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "backend"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serveBackend starts a server with a certificate for a service.
func serveBackend(t *testing.T, handler http.HandlerFunc) *backend {
	t.Helper()
	b := &backend{handler: handler, resources: flunders, group: group}
	pair, ca := certificate(t, "api.default.svc")
	b.ca = ca
	b.Server = httptest.NewUnstartedServer(b)
	b.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	b.EnableHTTP2 = true
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.StartTLS()
	t.Cleanup(b.Close)
	b.port = b.Listener.Addr().(*net.TCPAddr).Port
	return b
}

func (b *backend) set(change func(*backend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	handler, listed, down := b.handler, b.resources, b.down
	at := "/apis/" + b.group + "/v1"
	if parts := strings.Split(r.URL.Path, "/"); b.group == "*" && len(parts) > 3 {
		at = strings.Join(parts[:4], "/")
	}
	if r.TLS != nil {
		b.peers = r.TLS.PeerCertificates
	}
	b.mu.Unlock()
	switch {
	case down && (r.URL.Path == at || handler == nil):
		panic(http.ErrAbortHandler)
	case !strings.HasPrefix(r.URL.Path, at):
		http.NotFound(w, r) // other tests check the documents
	case r.URL.Path != at && handler != nil:
		handler(w, r)
	case listed == "":
		http.Error(w, "broken", http.StatusInternalServerError)
	case r.URL.Path == at:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, listed)
	default:
		http.NotFound(w, r)
	}
}

// cluster is a server with a client that may do everything.
type cluster struct {
	*testing.T
	url    string
	client *http.Client
	config *rest.Config
}

// start starts a server without the garbage collector, which requests discovery of other servers: the handlers here
// expect only requests of tests.
func start(t *testing.T, configure ...func(*bowsprit.Config)) *cluster {
	t.Helper()
	t.Parallel()
	configure = append(configure, func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"*", "-garbage-collector-controller"}
	})
	return clientOf(t, testserver.Start(t, configure...).RESTConfig())
}

func clientOf(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{T: t, url: config.Host, client: client, config: config}
}

// do sends a request and returns the status code and the body of the response.
func (c *cluster) do(method, path, body string, headers ...string) (int, string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// must sends a request that has to succeed.
func (c *cluster) must(method, path, body string, headers ...string) string {
	c.Helper()
	code, answer := c.do(method, path, body, headers...)
	if code < 200 || code > 299 {
		c.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// dial opens a connection to the server, for HTTP/1.
func (c *cluster) dial() net.Conn {
	c.Helper()
	config, err := rest.TLSConfigFor(c.config)
	if err != nil {
		c.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config)
	if err != nil {
		c.Fatal(err)
	}
	return conn
}

// service creates a service that stands for this machine.
func (c *cluster) service() {
	c.Helper()
	c.must("POST", "/api/v1/namespaces/default/services",
		`{"metadata":{"name":"api"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
}

// register creates the APIService of a backend.
func (c *cluster) register(b *backend, more string) {
	c.Helper()
	c.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(
		`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":2000,
		"versionPriority":10,"caBundle":%q,"service":{"namespace":"default","name":"api","port":%d}%s}}`,
		group, base64.StdEncoding.EncodeToString(b.ca), b.port, more))
}

// condition waits until done accepts the condition of the APIService, and returns the condition.
func (c *cluster) condition(name string, done func(status, reason, message string) bool) (reason, message string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+
		"/apis/apiregistration.k8s.io/v1/apiservices?watch=1&fieldSelector=metadata.name%3D"+name, nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var ev struct {
			Object struct {
				Status struct {
					Conditions []struct{ Type, Status, Reason, Message string }
				}
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			c.Fatal(err)
		}
		for _, one := range ev.Object.Status.Conditions {
			reason, message = one.Reason, one.Message
			if done(one.Status, one.Reason, one.Message) {
				return reason, message
			}
		}
	}
	c.Fatalf("APIService %s says %s: %s", name, reason, message)
	return "", ""
}

func (c *cluster) available() {
	c.Helper()
	c.condition("v1."+group, func(status, reason, message string) bool {
		return status == "True" && reason == "Passed" && message == "all checks passed"
	})
}

// TestProxy forwards requests to another server as a front proxy does, and returns their responses.
func TestProxy(t *testing.T) {
	c := start(t)
	type seen struct {
		uri, proto, body string
		header           http.Header
	}
	came := make(chan seen, 1)
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- seen{r.RequestURI, r.Proto, string(body), r.Header}
		w.Header().Set("Warning", `299 - "old"`)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "hello")
	})
	c.service()
	c.register(b, "")
	c.available()
	code, body := c.do("PUT", "/apis/"+group+"/v1/namespaces/default/flunders/a?b=1&a=2", `{"x":1}`,
		"X-Remote-User: mallory", "X-Remote-Group: system:masters", "X-Remote-Extra-Key: y", "X-Remote-Uid: 7",
		"Impersonate-User: jane", "Impersonate-Group: system:masters", "Impersonate-Uid: 42",
		"Impersonate-Extra-A%2Fb: c",
		"Audit-Id: the-id", "Authorization: ")
	if code != http.StatusTeapot || body != "hello" {
		t.Errorf("%d %s", code, body)
	}
	last := <-came
	if last.uri != "/apis/"+group+"/v1/namespaces/default/flunders/a?b=1&a=2" || last.proto != "HTTP/2.0" ||
		last.body != `{"x":1}` {
		t.Errorf("%+v", last)
	}
	for name, want := range map[string]string{
		"X-Remote-User": "jane", "X-Remote-Group": "system:masters,system:authenticated", "X-Remote-Uid": "42",
		"X-Remote-Extra-A%2fb": "c", "X-Remote-Extra-Key": "", "Impersonate-User": "", "Impersonate-Group": "",
		"Authorization": "", "Audit-Id": "the-id", "X-Forwarded-For": "127.0.0.1",
	} {
		if got := strings.Join(last.header.Values(name), ","); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.peers) != 1 || b.peers[0].Subject.CommonName != "front-proxy-client" {
		t.Errorf("the client certificate is %v", b.peers)
	}
	trusted := c.must("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
	if !strings.Contains(trusted, "front-proxy-client") || !strings.Contains(trusted, "requestheader-client-ca-file") {
		t.Errorf("what extension servers are to trust: %s", trusted)
	}
}

// TestConnectionHeader sends a Connection header with the names of the front proxy's headers: a proxy that removes
// hop-by-hop headers must not remove these.
func TestConnectionHeader(t *testing.T) {
	c := start(t)
	got := make(chan http.Header, 1)
	b := serveBackend(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	c.service()
	c.register(b, "")
	c.available()
	conn := c.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /apis/"+group+"/v1/namespaces/default/flunders HTTP/1.1\r\nHost: x\r\n"+
		"X-Forwarded-For: 192.0.2.1\r\nX-Hop: a\r\nX-Remote-User: mallory\r\n"+
		"Connection: close, X-Hop, X-Remote-User, X-Remote-Group, X-Remote-Extra-Reason\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	header := <-got
	for name, want := range map[string]string{
		"X-Remote-User": "kubernetes-admin", "X-Hop": "", "X-Forwarded-For": "192.0.2.1, 127.0.0.1",
	} {
		if have := strings.Join(header.Values(name), "|"); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	if groups := header.Values("X-Remote-Group"); !slices.Contains(groups, "system:masters") {
		t.Errorf("groups %q", groups)
	}
}

// TestDiscovery checks that discovery includes another server's resources, by priority, and marks them when stale.
func TestDiscovery(t *testing.T) {
	c := start(t)
	b := serveBackend(t, nil)
	c.service()
	c.register(b, "")
	c.available()
	const aggregated = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	version := func() (freshness string, resources []string) {
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal([]byte(c.must("GET", "/apis", "", aggregated)), &list); err != nil {
			t.Fatal(err)
		}
		if list.Items[0].Name != "apiregistration.k8s.io" {
			t.Errorf("the first group is %s", list.Items[0].Name)
		}
		i := slices.IndexFunc(list.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == group })
		if i != len(list.Items)-1 { // all others have higher priorities
			t.Fatalf("group %d of %d", i, len(list.Items))
		}
		for _, r := range list.Items[i].Versions[0].Resources {
			resources = append(resources, fmt.Sprint(r.Resource, " ", r.Scope, " ", r.ResponseKind.String(), " ",
				r.Subresources[0].Subresource))
		}
		return string(list.Items[i].Versions[0].Freshness), resources
	}
	freshness, resources := version()
	if got := fmt.Sprint(resources); freshness != "Current" ||
		got != "[flunders Namespaced wardle.example.com/v1, Kind=Flunder status]" {
		t.Errorf("%s %v", freshness, got)
	}
	if got := c.must("GET", "/apis/"+group, ""); !strings.Contains(got,
		`"preferredVersion":{"groupVersion":"`+group+`/v1"`) {
		t.Error(got)
	}
	if got := c.must("GET", "/apis/"+group+"/v1", ""); got != flunders {
		t.Errorf("the list of resources is not that of the other server: %s", got)
	}
	b.set(func(b *backend) { b.resources = "" })
	c.must("PATCH", "/api/v1/namespaces/default/services/api", `{"metadata":{"labels":{"a":"b"}}}`,
		"Content-Type: application/merge-patch+json")
	reason, message := c.condition("v1."+group, func(status, _, _ string) bool { return status == "False" })
	at := "https://localhost:" + strconv.Itoa(b.port) + "/apis/" + group + "/v1"
	if reason != "FailedDiscoveryCheck" || message !=
		"failing or missing response from "+at+": bad status from "+at+": 500" {
		t.Errorf("%s %s", reason, message)
	}
	if freshness, again := version(); freshness != "Stale" || !slices.Equal(again, resources) {
		t.Errorf("%s %v", freshness, again)
	}
	code, body := c.do("GET", "/apis/"+group+"/v1/flunders", "")
	if code != 503 || !strings.Contains(body, `APIService \"v1.`+group+`\" is not available: FailedDiscoveryCheck: `) {
		t.Errorf("%d %s", code, body)
	}
	b.set(func(b *backend) { b.resources = flunders })
	c.back("/apis/" + group + "/v1")
}
