package extension_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// frontProxy is the name of the server in front as a proxy.
const frontProxy = "front-proxy-client"

// replace overwrites a certificate and its key.
func replace(t *testing.T, certFile, keyFile string, cert, key []byte) {
	t.Helper()
	for file, data := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startSpy registers an APIService for a server that records the client certificate of the last request.
func startSpy(t *testing.T, client dynamic.Interface) *atomic.Pointer[[]byte] {
	t.Helper()
	seen := &atomic.Pointer[[]byte]{}
	spy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if shown := r.TLS.PeerCertificates; len(shown) > 0 {
			seen.Store(&shown[0].Raw)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"spy.example.com/v1"}`)
	}))
	spy.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	spy.StartTLS()
	t.Cleanup(spy.Close)
	_, port, _ := strings.Cut(hostOf(t, spy.URL), ":")
	number, err := strconv.ParseInt(port, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for resource, obj := range map[schema.GroupVersionResource]map[string]any{
		services: {"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "spy"},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"}},
		apiServices: {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.spy.example.com"}, "spec": map[string]any{
				"group": "spy.example.com", "version": "v1", "groupPriorityMinimum": int64(1000),
				"versionPriority": int64(15), "insecureSkipTLSVerify": true,
				"service": map[string]any{"namespace": "default", "name": "spy", "port": number},
			}},
	} {
		in := client.Resource(resource)
		var to dynamic.ResourceInterface = in
		if resource == services {
			to = in.Namespace("default")
		}
		_, err := to.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// ask lists vessels at a server directly, with a client certificate, and returns the code of its response and its
// serving certificate.
func ask(
	ctx context.Context, url string, shown tls.Certificate, headers ...string,
) (code int, serving []byte, err error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil },
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		url+"/apis/"+vessels.Group+"/v1/namespaces/default/vessels", nil)
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.TLS.PeerCertificates[0].Raw, nil
}

// forget removes an authority from the ConfigMap of the server in front, which no longer uses it. Until the ConfigMap
// is deleted it holds the authorities of all servers since its creation, as in Kubernetes.
func forget(t *testing.T, client dynamic.Interface, a *authority.Authority) {
	t.Helper()
	in := client.Resource(configMaps).Namespace("kube-system")
	const name = "extension-apiserver-authentication"
	eventually(t, "an authority is forgotten", func(ctx context.Context) error {
		got, err := in.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, key := range []string{"client-ca-file", "requestheader-client-ca-file"} {
			if text, _, _ := unstructured.NestedString(got.Object, "data", key); strings.Contains(text, string(a.CA)) {
				_ = in.Delete(ctx, name, metav1.DeleteOptions{})
				return errors.New("it is still there")
			}
		}
		return nil
	})
}

// TestRenewal renews the certificates of a server and of the server in front, with their authorities, while clients
// write. No write fails, and removed authorities are rejected.
func TestRenewal(t *testing.T) {
	t.Parallel()
	proxies, nextProxies, clients, nextClients, serving := authority.New(t), authority.New(t), authority.New(t),
		authority.New(t), authority.New(t)
	proxyCA, proxyCert, proxyKey := proxies.Files(t, frontProxy)
	clientCA, _, _ := clients.Files(t, "nobody")
	front := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.ClientCAFile = clientCA
		c.Authentication.RequestHeader = bowsprit.RequestHeaderConfig{
			ClientCAFile: proxyCA, AllowedNames: []string{frontProxy}, UsernameHeaders: []string{"X-Remote-User"},
			GroupHeaders: []string{"X-Remote-Group"}, ExtraHeadersPrefix: []string{"X-Remote-Extra-"},
			UIDHeaders: []string{"X-Remote-Uid"},
		}
		c.Aggregation.ProxyClientCertFile, c.Aggregation.ProxyClientKeyFile = proxyCert, proxyKey
	})
	dir := t.TempDir()
	config := bowsprit.Config{}
	config.TLS.CertFile, config.TLS.PrivateKeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	serve := func(by *authority.Authority) (certificate []byte) {
		cert, key := by.PEM(t, "vessels.default.svc")
		replace(t, config.TLS.CertFile, config.TLS.PrivateKeyFile, slices.Concat(cert, by.CA), key)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	serve(serving)
	server, _ := runBehind(t, front.RESTConfig(), config)
	vessels.WaitAvailable(t, front.RESTConfig())
	client := dynamicOf(t, front)
	spied := startSpy(t, client)
	load, endLoad := context.WithCancel(t.Context())
	l := &ledger{tried: map[string]bool{}, written: map[string]bool{}}
	var writers sync.WaitGroup
	defer writers.Wait()
	defer endLoad()
	for i := range 2 {
		writers.Go(func() {
			l.write(load, client.Resource(vesselsGVR).Namespace("default"), fmt.Sprintf("vessel-%d", i))
		})
	}
	wanted := func(desc string, code int, shown tls.Certificate, headers ...string) {
		t.Helper()
		eventually(t, desc, func(ctx context.Context) error {
			got, _, err := ask(ctx, server.URL(), shown, headers...)
			if err == nil && got != code {
				err = fmt.Errorf("the answer is %d", got)
			}
			return err
		})
		l.more(t, 10)
	}

	// Replace the serving certificate, first by one of the same authority and then by one of another. The server in
	// front learns each.
	for _, by := range []*authority.Authority{serving, authority.New(t)} {
		shown := serve(by)
		eventually(t, "another serving certificate", func(ctx context.Context) error {
			if _, now, err := ask(ctx, server.URL(), tls.Certificate{}); err != nil || !bytes.Equal(now, shown) {
				return fmt.Errorf("it is not there yet: %w", err)
			}
			service, err := client.Resource(apiServices).Get(ctx, "v1."+vessels.Group, metav1.GetOptions{})
			if err != nil {
				return err
			}
			text, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
			if bundle, err := base64.StdEncoding.DecodeString(text); err != nil || !bytes.Contains(bundle, by.CA) {
				return errors.New("the server in front believes another authority")
			}
			return nil
		})
		l.more(t, 10)
	}

	// Renew the authority of front proxies: add the next one, replace the certificate, then remove the old authority.
	user := []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"}
	oldProxy, newProxy := proxies.Pair(t, frontProxy), nextProxies.Pair(t, frontProxy)
	wanted("the proxy's authority", http.StatusOK, oldProxy, user...)
	if code, _, err := ask(t.Context(), server.URL(), newProxy, user...); err != nil || code == http.StatusOK {
		t.Errorf("a proxy of an unknown authority: %d, %v", code, err)
	}
	write := func(file string, data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(proxyCA, slices.Concat(proxies.CA, nextProxies.CA))
	wanted("both authorities of proxies", http.StatusOK, newProxy, user...)
	cert, key := nextProxies.PEM(t, frontProxy)
	next, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, proxyCert, proxyKey, cert, key)
	eventually(t, "the server in front shows its next certificate", func(context.Context) error {
		// Request a list, because its own checks run every half minute. The response is not a list.
		_, _ = client.Resource(schema.GroupVersionResource{Group: "spy.example.com", Version: "v1", Resource: "spies"}).
			List(t.Context(), metav1.ListOptions{})
		if seen := spied.Load(); seen == nil || !bytes.Equal(*seen, next.Certificate[0]) {
			return errors.New("it does not")
		}
		return nil
	})
	write(proxyCA, nextProxies.CA)
	forget(t, client, proxies)
	wanted("the next authority of proxies alone", http.StatusUnauthorized, oldProxy, user...)
	wanted("the next authority of proxies", http.StatusOK, newProxy, user...)

	// The authority of clients that come directly, likewise.
	identity := func(by *authority.Authority) tls.Certificate {
		pair, err := tls.X509KeyPair(by.PEM(t, "ahab", "system:masters"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	oldClient, newClient := identity(clients), identity(nextClients)
	wanted("the authority of clients", http.StatusOK, oldClient)
	wanted("an unknown authority of clients", http.StatusUnauthorized, newClient)
	write(clientCA, slices.Concat(clients.CA, nextClients.CA))
	wanted("the next authority of clients", http.StatusOK, newClient)
	write(clientCA, nextClients.CA)
	forget(t, client, clients)
	wanted("the next authority of clients alone", http.StatusUnauthorized, oldClient)

	endLoad()
	writers.Wait()
	if written, failed := l.counts(); failed > 0 {
		t.Errorf("%d writes of %d failed, the first one with %v", failed, failed+written, l.first)
	}
}
