package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// reference is the path of a real kube-apiserver. If it is set, the stories run against it instead of bowsprit, with an
// etcd of its own. With -update their expectations become Kubernetes' output; without it the test shows where
// bowsprit's recorded output differs. Stories about controllers cannot pass, because kube-apiserver has none.
var reference = os.Getenv("E2E_KUBE_APISERVER")

// referenceToken is the administrator's.
const referenceToken = "reference"

// startReference starts kube-apiserver with more flags on etcd and waits until it is ready. It is killed when t ends.
func startReference(t *testing.T, etcd *cluster, flags ...string) *process {
	t.Helper()
	return startReferenceBy(t, []string{reference}, etcd, flags...)
}

// startReferenceBy is startReference with a command line to which it appends the flags.
func startReferenceBy(t *testing.T, command []string, etcd *cluster, flags ...string) *process {
	t.Helper()
	dir := t.TempDir()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{kubeconfig: filepath.Join(dir, "kubeconfig")}
	for name, content := range map[string]string{
		"sa.key":     string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"tokens.csv": referenceToken + `,kubernetes-admin,,"system:masters"` + "\n",
		"kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: bowsprit, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}]
users: [{name: kubernetes-admin, user: {token: %s}}]
contexts: [{name: bowsprit, context: {cluster: bowsprit, user: kubernetes-admin}}]
current-context: bowsprit
`, port, referenceToken),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.cmd = startProgram(t, command[0], slices.Concat(command[1:],
		[]string{"--etcd-servers=" + etcd.endpoints(), "--secure-port=" + port, "--bind-address=127.0.0.1",
			"--cert-dir=" + dir,
			"--token-auth-file=" + filepath.Join(dir, "tokens.csv"), "--service-cluster-ip-range=10.0.0.0/24",
			"--authorization-mode=RBAC", "--allow-privileged",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" +
				filepath.Join(dir, "sa.key"),
			"--service-account-signing-key-file=" + filepath.Join(dir, "sa.key")}, flags)...)
	p.awaitReady(t)
	return p
}

// frontFlags returns the flags of a server in front of, or next to, other servers: the authorities it accepts and the
// certificate it presents.
func frontFlags(clients, proxies, front *pair) []string {
	return []string{"--client-ca-file=" + clients.certFile, "--requestheader-client-ca-file=" + proxies.certFile,
		"--requestheader-allowed-names=front", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + front.certFile, "--proxy-client-key-file=" + front.keyFile}
}

// awaitReady waits until the server reports that it is ready.
func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("kube-apiserver is not ready: %v", err)
		}
	}
}
