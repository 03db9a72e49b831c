package bowsprit_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestHeaderSmuggling checks headers by which front proxies name users, in many spellings. They must not give a client
// another user, nor a proxy more than the configured headers.
func TestHeaderSmuggling(t *testing.T) {
	t.Parallel()
	var none *signed
	proxies, clients := none.sign(t, pkix.Name{CommonName: "proxies"}), none.sign(t, pkix.Name{CommonName: "clients"})
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.ClientCAFile = clients.file(t)
		c.Authentication.RequestHeader = bowsprit.RequestHeaderConfig{
			ClientCAFile: proxies.file(t), AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-Remote-User"},
			GroupHeaders: []string{"X-Remote-Group"}, ExtraHeadersPrefix: []string{"X-Remote-Extra-"},
		}
	})
	jane, front := clients.sign(t, pkix.Name{CommonName: "jane"}), proxies.sign(t, pkix.Name{CommonName: "front"})
	const isJane, isBob = "jane system:authenticated", "bob system:authenticated"
	for _, tc := range []struct {
		name, headers string
		by            *signed
		want          string // the user, or the status code
	}{
		{"as it should be, by a client", "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n", jane, isJane},
		{"lower case", "x-remote-user: root\r\nx-remote-group: system:masters\r\n", jane, isJane},
		{"underscores", "X_Remote_User: root\r\nX_Remote_Group: system:masters\r\n", jane, isJane},
		{"space before the colon", "X-Remote-User : root\r\n", jane, "400"},
		{"a header inside another", "X-A: b\r\n X-Remote-User: root\r\n", jane, isJane},
		{"a line end of its own", "X-A: b\nX-Remote-User: root\r\n", jane, isJane},
		{"hop by hop", "Connection: X-Remote-User\r\nX-Remote-User: root\r\n", jane, isJane},
		{"with a wrong token", "X-Remote-User: root\r\nAuthorization: Bearer x\r\n", jane, isJane},
		{"no certificate", "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n", nil, "403"},
		{"no certificate, wrong token", "X-Remote-User: root\r\nAuthorization: Bearer x\r\n", nil, "401"},
		{"a proxy's second user", "X-Remote-User: bob\r\nX-Remote-User: root\r\n", front, isBob},
		{"a proxy's user with underscores", "X-Remote-User: bob\r\nX_Remote_Group: system:masters\r\n", front, isBob},
		{"a proxy's unknown header", "X-Remote-User: bob\r\nX-Remote-Groups: system:masters\r\n", front, isBob},
		{"a proxy's groups in one value", "X-Remote-User: bob\r\nX-Remote-Group: a,system:masters\r\n", front,
			"bob a,system:masters,system:authenticated"}, // one group of that name
		{"a proxy's user who acts as masters", "X-Remote-User: bob\r\nImpersonate-User: bob\r\n" +
			"Impersonate-Group: system:masters\r\n", front, "403"},
		{"groups without a user to act as", "X-Remote-User: bob\r\nImpersonate-Group: system:masters\r\n", front, "400"},
	} {
		if got := rawWhoAmI(t, server, tc.by, tc.headers); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// rawWhoAmI sends a request with unnormalized headers, and returns "name groups" or the status code.
func rawWhoAmI(t *testing.T, server *testserver.Server, by *signed, headers string) string {
	t.Helper()
	address, err := url.Parse(server.URL())
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.RESTConfig().CAData)
	c := &tls.Config{RootCAs: roots, ServerName: address.Hostname()}
	if by != nil {
		own := &tls.Certificate{Certificate: [][]byte{by.cert.Raw}, PrivateKey: by.key}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	conn, err := tls.Dial("tcp", address.Host, c)
	must(t, err)
	defer conn.Close()
	const body = `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`
	_, err = fmt.Fprintf(conn, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: %s\r\n%s"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address.Host, headers, len(body), body)
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Sprint(resp.StatusCode)
	}
	var review authenticationv1.SelfSubjectReview
	must(t, json.NewDecoder(resp.Body).Decode(&review))
	return review.Status.UserInfo.Username + " " + strings.Join(review.Status.UserInfo.Groups, ",")
}
