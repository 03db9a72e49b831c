package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// peerConfig returns the configuration of a server that trusts all others with the same keys.
func peerConfig(t *testing.T, etcd, keys string, off ...string) config.Config {
	t.Helper()
	c := config.Config{DataDir: t.TempDir(), Etcd: config.Etcd{Servers: []string{etcd}}}
	own := filepath.Join(c.DataDir, "pki")
	if err := os.CopyFS(own, os.DirFS(keys)); err != nil {
		t.Fatal(err)
	}
	c.Authentication.RequestHeader.ClientCAFile = filepath.Join(keys, "proxies", "ca.crt")
	c.Aggregation.ProxyClientCertFile = filepath.Join(keys, "proxies", "tls.crt")
	c.Aggregation.ProxyClientKeyFile = filepath.Join(keys, "proxies", "tls.key")
	c.Authentication.RequestHeader.AllowedNames = []string{"peer"}
	c.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	c.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	c.Aggregation.PeerCAFile = filepath.Join(keys, "ca.crt")
	c.Aggregation.PeerAdvertiseIP = "127.0.0.1"
	c.API.RuntimeConfig = map[string]string{}
	for _, version := range off {
		c.API.RuntimeConfig[version] = "false"
	}
	return c
}

// peerKeys makes the keys that several servers share.
func peerKeys(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := pki.Open(pki.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), "serving") { // each has its own
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ca, _, _ := authority.New(t).Files(t, "peer")
	if err := os.CopyFS(filepath.Join(dir, "proxies"), os.DirFS(filepath.Dir(ca))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ask sends a request with headers, "Name: value", and returns the response.
func (c coreClient) ask(method, path, body string, headers ...string) (int, http.Header, string) {
	c.t.Helper()
	transport, err := rest.TransportFor(c.server.RESTConfig())
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.Header.Set(name, value)
		}
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(data)
}

// eventually repeats a request until ok, or until the test's time is over.
func (c coreClient) eventually(path, header string, ok func(code int, body string) bool) string {
	c.t.Helper()
	limit, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		code, _, body := c.ask("GET", path, "", header)
		if ok(code, body) {
			return body
		}
		select {
		case <-tick.C:
		case <-limit:
			c.t.Fatalf("GET %s: %d %s", path, code, body)
		}
	}
}

const (
	aggregatedV2 = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	peerJobs     = "/apis/batch/v1/namespaces/default/jobs"
	peerPods     = `"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}`
)

func is200(code int, _ string) bool { return code == 200 }

// TestPeers runs two servers on one etcd. Each lacks a kind of the other, as during an upgrade.
func TestPeers(t *testing.T) {
	t.Parallel()
	etcd := parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)}).ClientURL()
	keys := peerKeys(t)
	a, stop := runServerOn(t, "a", peerConfig(t, etcd, keys, "apps/v1"))
	b, _ := runServerOn(t, "b", peerConfig(t, etcd, keys, "batch/v1", "certificates.k8s.io/v1"))

	b.eventually(peerJobs, "", is200)
	a.eventually("/apis/apps/v1/deployments", "", is200)
	b.do("POST", peerJobs, `{"metadata":{"name":"j"},`+peerPods+`}`, 201)
	a.do("GET", peerJobs+"/j", "", 200)
	if code, _, body := b.ask("GET", peerJobs, "", "X-Kubernetes-Peer-Proxied: true"); code != 404 {
		t.Errorf("a request that another server has passed on is passed on again: %d %s", code, body)
	}
	if code, _, body := b.ask("GET", "/apis/batch/v1/nothings", ""); code != 404 {
		t.Errorf("what no server serves: %d %s", code, body)
	}

	// The other server authorizes the original user, and ignores the client's own headers.
	code, header, body := b.ask("GET", peerJobs, "", "Impersonate-User: jane", "X-Remote-User: admin",
		"X-Remote-Group: system:masters")
	if code != 403 || !strings.Contains(body, `User \"jane\" cannot list resource \"jobs\"`) {
		t.Errorf("%d %s", code, body)
	}
	if len(header.Values("Audit-Id")) != 1 {
		t.Errorf("headers: %v", header)
	}
	made := b.do("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", csr(t), 201)
	user := a.do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, 201)
	if want := user["status"].(map[string]any)["userInfo"].(map[string]any)["username"]; want !=
		made["spec"].(map[string]any)["username"] {
		t.Errorf("made by %v, want %v", made["spec"], want)
	}

	// Discovery of both lists the versions of all servers. Each also lists only its own on request.
	both := func(_ int, body string) bool {
		return versionsIn(t, body)["apps/v1"] && versionsIn(t, body)["batch/v1"]
	}
	ofB := b.eventually("/apis", aggregatedV2, both)
	if ofA := a.eventually("/apis", aggregatedV2, both); ofA != ofB {
		t.Errorf("one says  %s\nother says %s", ofA, ofB)
	}
	_, _, body = b.ask("GET", "/apis", "", aggregatedV2+";profile=nopeer")
	if got := versionsIn(t, body); got["batch/v1"] || !got["apps/v1"] {
		t.Errorf("alone: %v", got)
	}
	for _, series := range []string{
		`apiserver_rerouted_request_total{code="201",group="batch",resource="jobs",version="v1"} 1`,
		`aggregator_discovery_nopeer_requests_total`, `aggregator_discovery_peer_aggregated_cache_misses_total`,
	} {
		if !strings.Contains(b.text("/metrics"), series) {
			t.Errorf("no %s", series)
		}
	}
	b.watches(a)
	b.forgets(a)

	// A stopped server gets no more requests.
	stop()
	b.eventually(peerJobs, "", func(code int, _ string) bool { return code == 404 })
	b.eventually("/apis", aggregatedV2, func(_ int, body string) bool { return !versionsIn(t, body)["batch/v1"] })
}

// TestPeerAuthorities has a server that does not believe another one's certificate, until --peer-ca-file has its
// authority.
func TestPeerAuthorities(t *testing.T) {
	t.Parallel()
	etcd := parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)}).ClientURL()
	keys := peerKeys(t)
	runServerOn(t, "a", peerConfig(t, etcd, keys))
	config := peerConfig(t, etcd, keys, "batch/v1")
	right, wrong := config.Aggregation.PeerCAFile, config.Authentication.RequestHeader.ClientCAFile
	file := filepath.Join(t.TempDir(), "peers.crt")
	config.Aggregation.PeerCAFile = file
	replace := func(from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = errors.Join(os.WriteFile(file+".new", text, 0o600), os.Rename(file+".new", file))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(wrong)
	b, _ := runServerOn(t, "b", config)
	b.eventually("/metrics", "", func(_ int, body string) bool {
		return strings.Contains(body, `apiserver_peer_discovery_sync_errors_total{type="fetch_discovery"}`)
	})
	if code, _, body := b.ask("GET", peerJobs, ""); code != 404 {
		t.Fatalf("a server that is not believed is asked: %d %s", code, body)
	}
	replace(right)
	b.eventually(peerJobs, "", is200)
}

// watches checks that a watch of another server's resource shows a change at once.
func (c coreClient) watches(other coreClient) {
	c.t.Helper()
	client, err := rest.HTTPClientFor(c.server.RESTConfig())
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := client.Get(c.server.URL() + peerJobs + "?watch=true&fieldSelector=metadata.name%3Dlater")
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	other.do("POST", peerJobs, `{"metadata":{"name":"later"},`+peerPods+`}`, 201)
	var event struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(res.Body).Decode(&event); err != nil || event.Type != "ADDED" ||
		event.Object.Metadata.Name != "later" {
		c.t.Errorf("%+v %v", event, err)
	}
}

// forgets makes a definition and deletes it, and checks that no server keeps it because another server had it.
func (c coreClient) forgets(other coreClient) {
	c.t.Helper()
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	other.do("POST", definitions, `{"metadata":{"name":"foos.peer.example.com"},"spec":{"group":"peer.example.com",
		"scope":"Namespaced","names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,
		"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 201)
	has := func(_ int, body string) bool { return versionsIn(c.t, body)["peer.example.com/v1"] }
	c.eventually("/apis", aggregatedV2, has)
	c.do("DELETE", definitions+"/foos.peer.example.com", "", 200)
	for _, one := range []coreClient{c, other} {
		one.eventually("/apis", aggregatedV2, func(code int, body string) bool { return !has(code, body) })
		one.eventually("/apis/peer.example.com/v1/foos", "", func(code int, _ string) bool { return code == 404 })
	}
}

// versionsIn returns the versions in an aggregated document.
func versionsIn(t *testing.T, body string) map[string]bool {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct{ Version string }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	out := map[string]bool{}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			out[g.Metadata.Name+"/"+v.Version] = true
		}
	}
	return out
}

// csr returns a CertificateSigningRequest. The object names its creator.
func csr(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return `{"metadata":{"name":"r"},"spec":{"signerName":"example.com/s","usages":["digital signature"],"request":` +
		string(request) + `}}`
}
