package webhook

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCredentialsTo checks that the user with the name closest to the webhook's is chosen. Source: "Authenticate
// apiservers" in "Dynamic Admission Control".
func TestCredentialsTo(t *testing.T) {
	t.Parallel()
	named := `
users:
- {name: "a.example.com:8443", user: {token: exact}}
- {name: "a.example.com", user: {token: port 443}}
- {name: "*.example.com", user: {token: domain}}
- {name: "*.example.com:8443", user: {token: domain and port}}
- {name: "hook.ns.svc", user: {token: service}}
- {name: me, user: {token: context}}
contexts:
- {name: now, context: {user: me}}
current-context: now
`
	star := strings.Replace(named, "users:", "users:\n- {name: \"*\", user: {token: star}}", 1)
	for _, test := range []struct{ text, url, want string }{
		{named, "https://a.example.com:8443/x", "exact"},
		{named, "https://a.example.com/x", "port 443"},
		{named, "https://a.example.com:443/x", "port 443"},
		{named, "https://a.example.com:9443/x", "context"},
		{named, "https://b.example.com", "domain"},
		{named, "https://c.b.example.com", "domain"},
		{named, "https://b.example.com:8443", "domain and port"},
		{named, "https://hook.ns.svc:443/", "service"},
		{named, "https://example.com", "context"},
		{star, "https://example.com", "star"},
		{star, "https://[::1]:9443", "star"},
		{"users: [{name: x, user: {token: t}}]", "https://example.com", ""},
		{"", "https://example.com", ""},
	} {
		c, err := ReadCredentials(kubeconfig(t, test.text))
		if err != nil {
			t.Fatal(err)
		}
		where, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if u := c.to(where); u != nil {
			got = u.token
		}
		if got != test.want {
			t.Errorf("%s is called by %q, want %q", test.url, got, test.want)
		}
	}
	if (*Credentials)(nil).to(&url.URL{}) != nil {
		t.Error("no credentials count as credentials")
	}
}

// TestCallWithCredentials checks the credentials that a webhook receives.
func TestCallWithCredentials(t *testing.T) {
	t.Parallel()
	var header, issuer string
	h := newHook(t, func(w http.ResponseWriter, r *http.Request) {
		header, issuer = r.Header.Get("Authorization"), ""
		if len(r.TLS.PeerCertificates) > 0 {
			issuer = r.TLS.PeerCertificates[0].Issuer.CommonName
		}
		echo(w, r)
	}, "127.0.0.1")
	cert, key := clientPair(t)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"cert": cert, "key": key, "token": []byte("from a file\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := base64.StdEncoding.EncodeToString
	c := New(Options{})
	defer c.Close()
	for _, test := range []struct{ user, header, issuer string }{
		{`{token: t}`, "Bearer t", ""},
		{`{tokenFile: ` + dir + `/token}`, "Bearer from a file", ""},
		{`{username: u, password: p}`, "Basic " + data([]byte("u:p")), ""},
		{`{client-certificate: ` + dir + `/cert, client-key: ` + dir + `/key}`, "", "hook-ca"},
		{`{client-certificate-data: ` + data(cert) + `, client-key-data: ` + data(key) + `}`, "", "hook-ca"},
		{`{}`, "", ""},
	} {
		credentials, err := ReadCredentials(kubeconfig(t, `users: [{name: "*", user: `+test.user+`}]`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), Target{URL: h.URL, CABundle: h.ca, Credentials: credentials},
			[]byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if header != test.header || issuer != test.issuer {
			t.Errorf("%s: the webhook saw %q and a certificate by %q, want %q, %q", test.user, header, issuer,
				test.header, test.issuer)
		}
	}
	// A token that was renewed is used at once.
	credentials, err := ReadCredentials(kubeconfig(t, `users: [{name: "*", user: {tokenFile: `+dir+`/token}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := Target{URL: h.URL, CABundle: h.ca, Credentials: credentials}
	if _, err := c.Call(t.Context(), target, []byte(`{}`)); err != nil ||
		header != "Bearer new" {
		t.Errorf("the webhook saw %q, %v", header, err)
	}
	// A token with a deleted file stays in use.
	if err := os.Remove(filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), target, []byte(`{}`)); err != nil ||
		header != "Bearer new" {
		t.Errorf("without the file the webhook saw %q, %v", header, err)
	}
}

// clientPair returns a certificate and its key, PEM.
func clientPair(t *testing.T) (cert, key []byte) {
	t.Helper()
	_, pair := certify(t)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestReadCredentialsErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"users: 1": "cannot unmarshal",
		"users: [{name: a, user: {exec: {command: x}}}]":                                   `user "a": credentials from a program are not supported`,
		"users: [{name: a, user: {auth-provider: {name: x}}}]":                             `credentials from a program are not supported`,
		"users: [{name: a, user: {as: b}}]":                                                "impersonation is not supported",
		"users: [{name: a, user: {token: t, username: u}}]":                                "username/password or bearer token may be set, but not both",
		"users: [{name: a, user: {client-certificate: x}}]":                                "a client certificate and its key belong together",
		"users: [{name: a, user: {client-certificate: x, client-key: y}}]":                 "no such file",
		"users: [{name: a, user: {tokenFile: x}}]":                                         "no such file",
		"users: [{name: a, user: {client-certificate-data: eA==}}]":                        "a client certificate and its key belong together",
		"users: [{name: a, user: {client-certificate-data: eA==, client-key-data: eA==}}]": "failed to find any PEM data",
	} {
		if _, err := ReadCredentials(kubeconfig(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if _, err := ReadCredentials(filepath.Join(t.TempDir(), "nope")); err == nil {
		t.Error("a file that is not there is read")
	}
}
