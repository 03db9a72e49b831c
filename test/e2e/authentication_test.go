package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/issuer"
)

// pair is a certificate in files.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	certFile, keyFile string
}

// sign returns a client's certificate; a nil authority makes another authority.
func (a *pair) sign(t *testing.T, name string, groups ...string) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if a == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{
		cert: cert, key: key,
		certFile: inFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		keyFile:  inFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

func inFile(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWaysToAuthenticate checks with kubectl how a server identifies the client: with certificates of two authorities,
// tokens of a file and of an issuer, and as other users.
func TestWaysToAuthenticate(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	ca, err := json.Marshal(string(i.CA))
	if err != nil {
		t.Fatal(err)
	}
	config := inFile(t, fmt.Appendf(nil, `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %s, audiences: [kubernetes], certificateAuthority: %s}
  claimMappings: {username: {claim: sub, prefix: "oidc:"}, groups: {claim: groups, prefix: ""}}
`, i.URL, ca))
	var none *pair
	clients, proxies := none.sign(t, "clients"), none.sign(t, "proxies")
	server := startServer(t, "--ephemeral", "--client-ca-file="+clients.certFile,
		"--requestheader-client-ca-file="+proxies.certFile, "--requestheader-allowed-names=front",
		"--requestheader-username-headers=X-Remote-User", "--authentication-config="+config,
		"--token-auth-file="+inFile(t, []byte("secret,bob,1,\"dev\"\n")))
	rest := server.config(t)
	authority := inFile(t, rest.CAData)
	kubectl := func(args ...string) string {
		cmd := exec.CommandContext(bounded(t, commandLimit), filepath.Join(binaries, "kubectl"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent", "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "error: " + strings.TrimPrefix(strings.TrimSpace(string(out)), "error: ")
		}
		return string(out)
	}
	const form = "-o=jsonpath={.status.userInfo.username} {.status.userInfo.uid} {.status.userInfo.groups}"
	by := func(args ...string) string {
		return kubectl(append([]string{
			"auth", "whoami", form, "--server=" + rest.Host, "--certificate-authority=" + authority,
		}, args...)...)
	}
	certificate := func(p *pair) []string {
		return []string{"--client-certificate=" + p.certFile, "--client-key=" + p.keyFile}
	}
	admin := func(args ...string) string {
		return kubectl(append([]string{"auth", "whoami", form, "--kubeconfig=" + server.kubeconfig}, args...)...)
	}
	token := i.Sign(map[string]any{"groups": []string{"readers"}})
	const jane = `oidc:jane  ["readers","system:authenticated"]`
	for got := ""; got != jane; got = by("--token=" + token) { // the issuer is looked for in the background
		if err := bounded(t, startLimit).Err(); err != nil || got != "" && !strings.Contains(got, "Unauthorized") {
			t.Fatalf("issuer: got %q, %v", got, err)
		}
	}
	for _, tc := range []struct{ name, got, want string }{
		{"the server's authority", admin(), `kubernetes-admin  ["system:masters","system:authenticated"]`},
		{"the other one", by(certificate(clients.sign(t, "alice", "ops"))...), `alice  ["ops","system:authenticated"]`},
		{"a stranger", by(certificate(none.sign(t, "eve").sign(t, "eve"))...), "error: You must be logged in"},
		{"a proxy without a user", by(certificate(proxies.sign(t, "front"))...), "error: You must be logged in"},
		{"a token of the file", by("--token=secret"), `bob 1 ["dev","system:authenticated"]`},
		{"a wrong token", by("--token=wrong"), "error: You must be logged in"},
		{"a token for another", by("--token=" + i.Sign(map[string]any{"aud": "x"})), "error: You must be logged in"},
		{"as a node", admin("--as=system:node:n"), `system:node:n  ["system:nodes","system:authenticated"]`},
		{"as a user", admin("--as=joe"), `joe  ["system:authenticated"]`},
		{"as a user of groups", admin("--as=joe", "--as-group=a", "--as-group=b"),
			`joe  ["a","b","system:authenticated"]`},
		{"as one with UID and more", admin("--as=joe", "--as-uid=7", "--as-user-extra=k=v"),
			`joe 7 ["system:authenticated"]`},
		{"as a service account", admin("--as=system:serviceaccount:ns:sa"),
			`system:serviceaccount:ns:sa  ["system:serviceaccounts","system:serviceaccounts:ns","system:authenticated"]`},
		{"as another without the permission", by("--token=secret", "--as=joe"),
			"error: the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it"},
		{"as nobody", admin("--as-uid=7"), "error: "},
	} {
		if tc.got != tc.want && !(strings.HasPrefix(tc.want, "error: ") && strings.HasPrefix(tc.got, tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}
