package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// users are the attackers. Their tokens are their names.
const users = `mallory,mallory,1,"attackers"
alice,alice,2
bob,bob,3
carol,carol,4
dave,dave,5
aggregated-roles,aggregated-roles,6
`

// victim starts a server with the users.
func victim(t *testing.T) *testserver.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	return testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.TokenAuthFile = file })
}

// TestScripts runs all scripts against one server.
func TestScripts(t *testing.T) {
	t.Parallel()
	script.Run(t, "testdata/*.txt", victim(t).RESTConfig())
}

// tlsConfig returns the configuration of a client without a certificate, for one protocol.
func tlsConfig(t *testing.T, config *rest.Config, protocol string) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("no authority in the configuration")
	}
	return &tls.Config{RootCAs: roots, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12}
}

// dial opens a connection for one protocol, which the test closes at its end.
func dial(t *testing.T, server *testserver.Server, protocol string) *tls.Conn {
	t.Helper()
	d := tls.Dialer{Config: tlsConfig(t, server.RESTConfig(), protocol)}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*tls.Conn)
}

// client sends requests with the token of a user.
type client struct {
	*http.Client
	url, token string
}

// as returns a client for a user; "" is the administrator.
func as(t *testing.T, server *testserver.Server, token string) client {
	t.Helper()
	config := server.RESTConfig()
	if token != "" {
		config = rest.AnonymousClientConfig(config)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client{c, server.URL(), token}
}

// send returns the status of the response, or 0 without a response.
func (c client) send(ctx context.Context, method, path, contentType, body string) int {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// alive fails the test if the administrator is not answered.
func alive(t *testing.T, server *testserver.Server) {
	t.Helper()
	code := as(t, server, "").send(t.Context(), http.MethodGet, "/api/v1/namespaces", "", "")
	if code != http.StatusOK {
		t.Fatalf("after the attack the administrator gets status %d", code)
	}
}
